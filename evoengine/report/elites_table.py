"""The table of elites."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from evoengine.records import Status
from evoengine.report import format
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column
from evoengine.report.rows import EliteRow
from evoengine.report.status_style import status_style
from evoengine.report.table_notes import (
    AS_SELECTED,
    CHANGED,
    FINALS,
    GPU_REMARKS,
    MODELLED,
    OVER_TARGET,
    SPEEDUP,
)


def elites_table(
    rows: Sequence[EliteRow], title: str | None = "elites", with_notes: bool = True
) -> RenderableType:
    """The elites: tier, place, trial, name, tunables, speed-up with interval, the speed-up that
    selection saw, latency, registers.

    If times are modelled: the ratio to the first seed, the modelled time and what limits it.
    `with_notes`: also the notes that explain the columns.
    """
    if not rows:
        return Text("no elites yet: no kernel has been correct and timed", style="dim")
    modelled = any(row.modelled for row in rows)
    times = (
        [number_column("vs first seed"), number_column("modelled us"), text_column("limited by")]
        if modelled
        else [Column("speed-up"), number_column("selected at"), number_column("us")]
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
            *(_modelled_cells(row) if modelled else _measured_cells(row)),
            _registers(row),
            style="bold" if row.place == 1 else "",
        )
    notes = [MODELLED if modelled else SPEEDUP] if with_notes or not modelled else []
    notes += _notes_on_finals(rows)
    if any(_has_marked_time(row) for row in rows):
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


def _measured_cells(row: EliteRow) -> tuple[str | Text, str, str]:
    """The speed-up with its interval, the one that selection saw, and the time."""
    speedup: str | Text = format.speedup(row.speedup)
    if _failed_at_the_end(row) and row.final_status:
        speedup = Text(row.final_status.value, style=status_style(row.final_status))
    elif row.awaits_final:
        speedup = f"{speedup}^"
    measured = row.final_status is not None
    selected = f"{row.selected_speedup.value:.2f}x" if measured and row.selected_speedup else ""
    mark = "*" if _has_marked_time(row) else ""
    return speedup, selected, f"{format.micros(row.latency_us)}{mark}"


def _has_marked_time(row: EliteRow) -> bool:
    """Whether a time is shown that the GPU's state may have made longer."""
    return row.latency_us is not None and bool(row.gpu_remarks)


def _failed_at_the_end(row: EliteRow) -> bool:
    return row.final_status not in (None, Status.correct)


def _notes_on_finals(rows: Sequence[EliteRow]) -> list[str]:
    """Which figures are of the end of the run, and who was not correct there."""
    notes = [FINALS] if any(row.final_status for row in rows) else []
    if any(row.awaits_final for row in rows):
        notes.append(AS_SELECTED)
    return notes + [
        format.printable(
            f"{row.tier}, place {row.place}: measured once more at the end, it was"
            f" {row.final_status}: {row.final_reason}"
        )
        for row in rows
        if _failed_at_the_end(row)
    ]


def _registers(row: EliteRow) -> str:
    mark = "!" if row.keeps_target is False else ""
    return "-" if row.registers is None else f"{row.registers}{mark}"
