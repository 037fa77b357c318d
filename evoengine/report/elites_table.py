"""The table of elites."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from evoengine.report import format
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column
from evoengine.report.rows import EliteRow
from evoengine.report.table_notes import CHANGED, MODELLED, OVER_TARGET, SPEEDUP


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
            *(
                _modelled_cells(row)
                if modelled
                else (format.speedup(row.speedup), format.micros(row.latency_us))
            ),
            _registers(row),
            style="bold" if row.place == 1 else "",
        )
    notes = [MODELLED if modelled else SPEEDUP] if with_notes or not modelled else []
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


def _registers(row: EliteRow) -> str:
    mark = "!" if row.keeps_target is False else ""
    return "-" if row.registers is None else f"{row.registers}{mark}"
