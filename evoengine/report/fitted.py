"""A table that keeps figures whole and shortens words, whatever the width of the terminal.

rich by itself would shorten every column by its share, figures too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from evoengine.report.figures import printable

GAP = 2  # blanks between columns
DIVIDER = 1  # of them drawn by the box
NARROWEST = 8  # an elastic column below this says nothing; optional columns go first


@dataclass(frozen=True)
class Column:
    """One column: figures stand right, elastic ones give way, optional ones are left out when there is no room."""

    name: str
    right: bool = False
    elastic: bool = False
    optional: bool = False


def figure(name: str, optional: bool = False) -> Column:
    """A column of figures."""
    return Column(name, right=True, optional=optional)


def words(name: str, optional: bool = False) -> Column:
    """A column of words that may be cut."""
    return Column(name, elastic=True, optional=optional)


@dataclass
class FittedTable:
    """Columns and rows; widths are settled when it is printed."""

    columns: Sequence[Column]
    title: str | None = None
    rows: list[tuple[list[Text], StyleType]] = field(default_factory=list)

    def add(self, *cells: str | Text, style: StyleType = "") -> None:
        """One row; text is taken as it is, without markup, and in one line."""
        assert len(cells) == len(self.columns), f"expected {len(self.columns)} cells, got {len(cells)}"
        self.rows.append(([_one_line(cell) for cell in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown, widths = self._fit(options.max_width)
        table = Table(
            box=box.SIMPLE_HEAD,
            title=self.title,
            title_justify="left",
            title_style="bold",
            padding=(0, GAP - DIVIDER, 0, 0),
            pad_edge=False,
        )
        table.show_edge = False
        for index in shown:
            column = self.columns[index]
            table.add_column(
                column.name, justify="right" if column.right else "left", no_wrap=True, overflow="ellipsis", width=widths[index]
            )
        for cells, style in self.rows:
            table.add_row(*(cells[index] for index in shown), style=style)
        yield table

    def _fit(self, room: int) -> tuple[list[int], dict[int, int]]:
        """The columns that are shown, and the width of each."""
        natural = [max([len(column.name), *(cells[index].cell_len for cells, _ in self.rows)]) for index, column in enumerate(self.columns)]
        shown = list(range(len(self.columns)))
        while self._elastic_room(shown, natural, room) < 0:
            optional = [index for index in shown if self.columns[index].optional]
            if not optional:
                break
            shown.remove(optional[-1])
        return shown, self._widths(shown, natural, room)

    def _elastic_room(self, shown: list[int], natural: list[int], room: int) -> int:
        """What is left once elastic columns have their least; negative when that does not fit."""
        least = sum(min(natural[index], NARROWEST) if self.columns[index].elastic else natural[index] for index in shown)
        return room - least - GAP * (len(shown) - 1)

    def _widths(self, shown: list[int], natural: list[int], room: int) -> dict[int, int]:
        """Elastic columns share what is left, the narrow ones first."""
        widths = {index: natural[index] for index in shown}
        elastic = sorted((index for index in shown if self.columns[index].elastic), key=lambda index: natural[index])
        left = room - GAP * (len(shown) - 1) - sum(widths[index] for index in shown if index not in elastic)
        for position, index in enumerate(elastic):
            widths[index] = max(1, min(natural[index], left // (len(elastic) - position)))
            left -= widths[index]
        return widths


def _one_line(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(" ".join(printable(cell).split()))
