"""The findings of `evoengine doctor` as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evoengine.report.fitted_table import INDENT
from evoengine.report.rows import DoctorFinding

ROOM = 60  # columns; below that, the findings would get less than half of the width


def findings_table(rows: Iterable[DoctorFinding]) -> RenderableType:
    """What `doctor` found, and what to do about it."""
    return _Findings(tuple(rows))


@dataclass(frozen=True)
class _Findings:
    """Name, state and finding side by side where there is room, else below each other."""

    rows: tuple[DoctorFinding, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(no_wrap=True)
        if options.max_width >= ROOM:
            grid.add_column(no_wrap=True)
            grid.add_column(overflow="fold")
            for row in self.rows:
                grid.add_row(Text(row.name, style="bold"), _state_of(row), _found_of(row))
            yield grid
            return
        for row in self.rows:
            yield Text.assemble((row.name, "bold"), "  ", _state_of(row))
            yield Padding(_found_of(row), (0, 0, 0, INDENT))


def _state_of(row: DoctorFinding) -> Text:
    return Text(row.state, style={"ok": "green", "missing": "red", "absent": "yellow"}[row.state])


def _found_of(row: DoctorFinding) -> Text:
    found = Text(row.found, overflow="fold")
    return found.append(f"\n-> {row.remedy}", style="cyan") if row.remedy else found
