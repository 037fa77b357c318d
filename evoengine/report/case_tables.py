"""Tables of the cases of a verdict: errors, checked mode, times; and their kernel activity."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from evoengine.report import format
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column
from evoengine.report.rows import CaseRow, VerdictFigures
from evoengine.report.table_notes import ACTIVITY

MOST_BOUNDS = 4  # shown on a line; the JSON has all


def checks_table(rows: Iterable[CaseRow]) -> FittedTable:
    """The worst input set of every case against its limits; a case without a comparison has no
    row.
    """
    limits = [
        number_column("max abs"),
        number_column("allowed max abs"),
        number_column("rel RMSE"),
        number_column("allowed rel RMSE"),
    ]
    columns = [
        text_column("case"),
        Column("ok"),
        number_column("sets"),
        *limits,
        number_column("failing"),
        text_column("worst set", True),
        text_column("at", True),
    ]
    table = FittedTable(columns, "checks: the worst input set of each case")
    for row in rows:
        if row.input_sets:
            table.add(
                f"{row.case}{' (hidden)' if row.hidden else ''}",
                Text("yes", style="green") if row.ok else Text("NO", style="red"),
                f"{row.input_sets - row.failing_sets}/{row.input_sets}",
                format.error(row.max_abs),
                format.error(row.limit_abs),
                format.error(row.rel_rmse),
                format.error(row.limit_rel_rmse),
                f"{row.failing_share or 0.0:.2%}"
                + (f", {row.nan_count} NaN" if row.nan_count else ""),
                row.worst_set,
                row.worst_at,
            )
    return table


def checked_mode_table(rows: Iterable[CaseRow]) -> FittedTable:
    """The blocks of every case that checked mode followed, and the number of findings."""
    columns = [
        text_column("case"),
        text_column("checks"),
        number_column("blocks"),
        number_column("findings"),
        number_column("wavefronts"),
        number_column("sectors"),
    ]
    table = FittedTable(
        columns,
        "checked mode: every memory access is followed (wavefronts per shared-memory request,"
        " sectors per global-memory request)",
    )
    for row in rows:
        if row.checked_for:
            blocks = (
                f"all {row.total_blocks}"
                if row.checked_blocks == row.total_blocks
                else f"{row.checked_blocks} of {row.total_blocks}"
            )
            findings = Text(str(len(row.findings)), style="red" if row.findings else "")
            each = (
                f"{value:.2f}" if value is not None else ""
                for value in (row.wavefronts_per_request, row.sectors_per_request)
            )
            table.add(
                f"{row.case}{' (hidden)' if row.hidden else ''}",
                ", ".join(row.checked_for),
                blocks,
                findings,
                *each,
            )
    return table


def shown_bounds(row: CaseRow) -> list[str]:
    """The names of the bounds of a modelled time that tables show: the largest, in order."""
    return list(row.bounds_us)[:MOST_BOUNDS]


def modelled_table(rows: Iterable[CaseRow]) -> FittedTable:
    """The modelled time of every case, with its largest bounds."""
    table = FittedTable(
        [
            text_column("case"),
            number_column("modelled us"),
            Column("limited by"),
            text_column("bounds, us"),
        ],
        "modelled times per call",
    )
    for row in rows:
        if row.modelled_us is not None:
            bounds = ", ".join(f"{name} {row.bounds_us[name]:.3g}" for name in shown_bounds(row))
            table.add(row.case, f"{row.modelled_us:.2f}", row.limiter, bounds)
    return table


def timings_table(rows: Iterable[CaseRow]) -> FittedTable:
    """The times of every timed case and its baseline, hot and with a flushed L2."""
    hot = [Column("hot us"), number_column("hot baseline us", True), Column("hot speed-up")]
    cold = [
        number_column("cold us"),
        number_column("cold baseline us", True),
        number_column("cold speed-up"),
    ]
    table = FittedTable(
        [
            text_column("case"),
            text_column("baseline"),
            *hot,
            *cold,
            number_column("calls", True),
            number_column("bytes", True),
        ],
        "times per call: the median with its 95 % interval; calls: of a hot sample, each on other"
        " inputs; bytes: inputs and outputs of a call, in L2 when a hot sample begins, as far as"
        " they fit",
    )
    for row in rows:
        if row.hot_us:
            table.add(
                row.case,
                row.baseline,
                format.micros_interval(row.hot_us),
                format.micros(row.hot_baseline_us),
                format.speedup(row.hot_speedup),
                format.micros(row.cold_us),
                format.micros(row.cold_baseline_us),
                f"{row.cold_speedup.value:.2f}x" if row.cold_speedup else "-",
                _calls(row),
                format.size(row.call_bytes) if row.call_bytes else "-",
            )
    return table


def activity_lines(row: VerdictFigures) -> list[Text]:
    """The kernel activity of each case that has one, or why none could be measured."""
    lines = [
        f"{case.case}: kernel activity {case.activity_us:.2f} us (baseline"
        f" {case.baseline_activity_us:.2f} us) of {format.micros(case.hot_us)} us replayed hot:"
        f" {', '.join(f'{item.name} {item.us:.2f}' for item in case.activity_launches)}"
        for case in row.cases
        if case.activity_us is not None
    ]
    if lines:
        lines.append(ACTIVITY)
    elif row.activity_problem:
        lines.append(f"kernel activity: unknown: {row.activity_problem}")
    return [Text(format.printable(line)) for line in lines]


def _calls(row: CaseRow) -> str:
    """The calls of a hot sample, a range where each has a number of its own."""
    if row.least_calls == row.most_calls:
        return str(row.most_calls)
    return f"{row.least_calls}-{row.most_calls}"
