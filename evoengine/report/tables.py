"""Tables of rows, for a terminal or a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evoengine.records import TIMING_VERSION, Environment, Status, Unanswered
from evoengine.report import format
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column
from evoengine.report.resource_tables import over_target, resources_table
from evoengine.report.rows import (
    CaseRow,
    EliteRow,
    RunRows,
    TaskRow,
    TrialDetail,
    TrialRow,
    VerdictFigures,
)

STATUS_STYLES = {  # all others: red
    Status.correct: "green",
    Status.wrong_result: "yellow",
    Status.unstable: "yellow",
    Status.unsupported: "yellow",  # a gap of the emulator, not a fault of the kernel
    Status.rejected: "dim",
}
MOST_BOUNDS = 4  # shown on a line; the JSON has all
MOST_FINDINGS = 3  # of an audit; the JSON has all
MODELLED = "times are modelled, not measured: they give no speed-up against a library"
CHANGED = "tunables: only values that differ from the kernel's defaults"
SPEEDUP = (
    "speed-up: time of the fastest baseline / time of the kernel, with its 95 % interval; below 1"
    " the kernel is slower"
)
ACTIVITY = (
    "kernel activity: kernels, fills and copies alone, as a profiler shows them; replayed times"
    " include what lies between launches, and speed-ups come from these"
)
GPU_REMARKS = (
    "*: timed while the GPU was throttled, below its usual clock or shared; `show --trial` says"
    " which"
)
OVER_TARGET = "!: exceeds a limit of the task's target; `show --trial` says which"


def status_style(status: Status) -> str:
    """The colour of a status."""
    return STATUS_STYLES.get(status, "red")


def elites_table(
    rows: Sequence[EliteRow], title: str | None = "elites", with_notes: bool = True
) -> RenderableType:
    """The elites: tier, place, trial, name, tunables, speed-up with interval, latency, registers.

    If times are modelled: the ratio to the first seed, the modelled time and what limits it.
    `with_notes`: also the notes that explain the columns.
    """
    if not rows:
        return Text("no elites yet: no kernel has been correct and timed", style="dim")
    modelled = any(row.modelled for row in rows)
    times = (
        [number_column("vs first seed"), number_column("modelled us"), text_column("limited by")]
        if modelled
        else [Column("speed-up"), number_column("us")]
    )
    columns = [
        Column("tier"),
        number_column("place"),
        number_column("trial"),
        text_column("name"),
        text_column("tunables"),
        *times,
        number_column("regs"),
    ]
    table = FittedTable(columns, title)
    for row in rows:
        table.add(
            row.tier,
            str(row.place),
            str(row.trial),
            row.name,
            format.tunables(row.changed),
            *(_modelled_cells(row) if modelled else (format.speedup(row.speedup), _micros(row))),
            _registers(row),
            style="bold" if row.place == 1 else "",
        )
    notes = [MODELLED if modelled else SPEEDUP] if with_notes or not modelled else []
    if any(row.gpu_remarks for row in rows):
        notes.append(GPU_REMARKS)
    if any(row.keeps_target is False for row in rows):
        notes.append(OVER_TARGET)
    notes += [
        f"{row.tier}: a more exact kernel leads, its errors keep the limit of tier {row.exact_as}"
        for row in rows
        if row.place == 1 and row.exact_as
    ]
    if with_notes and any(row.tunables for row in rows):
        notes.append(CHANGED)
    return Group(table, *(Text(note, style="dim") for note in notes)) if notes else table


def _modelled_cells(row: EliteRow) -> tuple[str, str, str]:
    return format.vs_first(row.vs_first), format.micros(row.latency_us), row.limiter or "-"


def _micros(row: EliteRow) -> str:
    return f"{format.micros(row.latency_us)}{'*' if row.gpu_remarks else ''}"


def _registers(row: EliteRow) -> str:
    mark = "!" if row.keeps_target is False else ""
    return "-" if row.registers is None else f"{row.registers}{mark}"


def trials_table(rows: Iterable[TrialRow]) -> FittedTable:
    """One line for each trial."""
    rows = list(rows)
    modelled = any(row.modelled for row in rows)
    table = FittedTable(
        [
            number_column("trial"),
            Column("operator", optional=True),
            text_column("name"),
            text_column("tunables"),
            Column("status"),
            Column("tier", optional=True),
            number_column("vs first seed" if modelled else "speed-up"),
            number_column("modelled us" if modelled else "us", optional=True),
            number_column("place"),
            text_column("reason", least=32),
        ],
        "trials",
    )
    for row in rows:
        table.add(
            str(row.trial),
            row.operator,
            row.name,
            format.tunables(row.changed),
            Text(row.status.value, style=status_style(row.status)),
            row.tier,
            (
                format.vs_first(row.vs_first)
                if modelled
                else f"{row.speedup.value:.2f}x"
                if row.speedup
                else "-"
            ),
            format.micros(row.latency_us),
            "" if row.place is None else str(row.place),
            "" if row.status is Status.correct else row.reason,
        )
    return table


def run_report(rows: RunRows, last: int | None = None) -> RenderableType:
    """The summary of a run, its elites, and its `last` trials (None: all of them)."""
    shown = rows.trials if last is None else rows.trials[max(0, len(rows.trials) - last) :]
    parts: list[RenderableType] = [
        run_head(rows),
        section(elites_table(rows.elites, with_notes=False)),
        section(trials_table(shown)),
    ]
    if any(row.tunables for row in shown):
        parts.append(Text(CHANGED, style="dim"))
    if len(shown) < len(rows.trials):
        parts.append(
            Text(
                f"{len(rows.trials) - len(shown)} earlier trials are not shown; --all shows them",
                style="dim",
            )
        )
    return Group(*parts)


def run_head(rows: RunRows) -> Table:
    """The summary of a run in a few lines."""
    facts = {
        "run": f"{rows.name}  ({rows.folder})",
        "begun": f"{rows.created} by evoengine {rows.version}{_timing(rows)}",
        "task": rows.task,
        "device": rows.device,
        "generator": f"{rows.generator}, model {rows.model}" if rows.model else rows.generator,
        "trials": (
            f"{rows.settled} of {rows.budget} settled" + (f"; {rows.ended}" if rows.ended else "")
        ),
        "counts": ", ".join(f"{count} {status}" for status, count in rows.counts.items()) or "none",
        "baselines": (
            "; ".join(_baselines(rows, case) for case in rows.baselines)
            or (f"none: {MODELLED}" if rows.modelled else "-")
        ),
    }
    if rows.usage.prompt_tokens or rows.usage.completion_tokens:
        facts["spent"] = format.usage(rows.usage, rows.cost_known)
    if rows.unanswered.requests:
        facts["unanswered"] = _unanswered(rows.unanswered)
    if rows.changes:
        facts["changed"] = "; ".join(rows.changes)
    if rows.audit_findings:
        facts["audit"] = _audit(rows.audit_findings)
    if rows.baseline_problems:
        facts["left out"] = "; ".join(
            f"{name}: {problem}" for name, problem in rows.baseline_problems.items()
        )
    return facts_grid(facts)


def _timing(rows: RunRows) -> str:
    """The run's version of the timing, if it is not this one."""
    if rows.timing_version == TIMING_VERSION:
        return ""
    return f", timing version {rows.timing_version}: cannot be resumed by this evoengine"


def _unanswered(found: Unanswered) -> str:
    cost = f", for up to {found.most_usd:.4f} USD" if found.most_usd else ""
    return (
        f"{found.requests} requests without a reply may have been paid for{cost} (including those"
        " under way)"
    )


def _audit(findings: Sequence[str]) -> str:
    """What the task of a run lets through."""
    left = len(findings) - MOST_FINDINGS
    more = f"; and {left} more: `evoengine audit` lists them" if left > 0 else ""
    shown = "; ".join(findings[:MOST_FINDINGS])
    return f"the task lets wrong outputs through: {shown}{more}"


def _baselines(rows: RunRows, case: str) -> str:
    """The baselines of a case with their times, the fastest first."""
    times = sorted(rows.baseline_us.get(case, {}).items(), key=lambda item: item[1])
    return (
        f"{case}: {', '.join(f'{name} {us:.4g} us' for name, us in times) or rows.baselines[case]}"
    )


def section(content: RenderableType) -> Group:
    """`content` with an empty line before it."""
    return Group(Text(), content)


def facts_grid(facts: dict[str, str]) -> Table:
    """Names on the left, values on the right."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(name, Text(format.printable(value)))
    return grid


def verdict_report(row: VerdictFigures) -> RenderableType:
    """One verdict in full: status, errors of every case, times, resources, environment."""
    parts: list[RenderableType] = [_verdict_head(row)]
    if any(case.input_sets for case in row.cases):
        parts.append(section(checks_table(row.cases)))
    if any(case.checked_for for case in row.cases):
        parts.append(section(checked_mode_table(row.cases)))
    if any(case.hot_us for case in row.cases):
        parts.append(section(timings_table(row.cases)))
    if found := activity_lines(row):
        parts.append(section(Group(*found)))
    if any(case.modelled_us for case in row.cases):
        parts.append(section(modelled_table(row.cases)))
    if row.resources:
        parts.append(section(resources_table(row.resources)))
    parts += over_target(row.resources, row.target_exceeds)
    if row.detail:
        parts.append(
            section(
                Group(Text("detail", style="bold"), Text(format.printable(row.detail.rstrip())))
            )
        )
    return Group(*parts)


def _verdict_head(row: VerdictFigures) -> Table:
    facts = {
        "kernel": row.name,
        "status": row.status.value,
        "reason": row.reason,
        "tier": row.tier or "-",
        "tunables": format.tunables(row.tunables),
    }
    if row.speedup:
        facts["speed-up"] = (
            f"{format.speedup(row.speedup)}  ({format.micros_interval(row.latency_us)} us per call)"
        )
    if row.modelled:
        facts["modelled time"] = f"{format.micros(row.latency_us)} us per call; {MODELLED}"
    if row.phases_s:
        facts["took"] = ", ".join(
            f"{name} {seconds:.2f} s" for name, seconds in row.phases_s.items()
        )
    if row.environment:
        facts["device"] = _environment(row.environment)
    if row.gpu_state:
        facts["GPU"] = format.gpu_state(row.gpu_state)
    return facts_grid(facts)


def _environment(found: Environment) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    return f"{found.device} ({found.arch}); {versions}"


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
            bounds = ", ".join(
                f"{name} {us:.3g}" for name, us in list(row.bounds_us.items())[:MOST_BOUNDS]
            )
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


def _calls(row: CaseRow) -> str:
    """The calls of a hot sample, a range where each has a number of its own."""
    if row.least_calls == row.most_calls:
        return str(row.most_calls)
    return f"{row.least_calls}-{row.most_calls}"


def trial_report(detail: TrialDetail) -> RenderableType:
    """One trial in full."""
    row = detail.row
    facts = {
        "trial": str(row.trial),
        "operator": (
            row.operator + (f" of trial {', '.join(map(str, row.parents))}" if row.parents else "")
        ),
        "place": "-" if row.place is None else f"{row.place} of {row.tier}",
    }
    if detail.began:
        facts["begun"], facts["judged"] = detail.began, detail.ended
    facts |= {
        name: text
        for name, text in (("insight", detail.insight), ("problem", detail.problem))
        if text
    }
    if detail.replies:
        facts["replies"] = f"{detail.replies}, {format.usage(detail.usage, detail.cost_known)}"
    if detail.first is not None:
        time = (
            f"modelled {format.micros(detail.first.latency_us)} us"
            if detail.first.modelled
            else format.speedup(detail.first.speedup)
        )
        found = f"{detail.first.status.value}, {time}"
        facts["first verdict"] = f"{found}; the verdict below is its verification"
    return Group(facts_grid(facts), verdict_report(detail.verdict))


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


def tasks_table(rows: Iterable[TaskRow]) -> FittedTable:
    """The packaged tasks."""
    table = FittedTable(
        [
            Column("task"),
            Column("target"),
            number_column("trials"),
            Column("tiers"),
            text_column("dimensions", least=20),
            text_column("cases", least=20),
            text_column("summary", least=32),
        ]
    )
    for row in rows:
        table.add(
            row.name,
            row.target or "-",
            str(row.trials),
            ", ".join(row.tiers),
            ", ".join(f"{name} ({kind})" for name, kind in row.dims.items()),
            ", ".join(row.cases),
            row.summary or row.problem,
        )
    return table
