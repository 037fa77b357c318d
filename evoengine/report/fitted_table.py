"""A table that shows every cell in full, whatever the width of the terminal.

rich would truncate all columns, numbers too. Here text is wrapped in its column; a column that
still has no room moves below its row, as `name: value`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.style import StyleType
from rich.text import Text

from evoengine.report.format import printable

GAP = 2  # spaces between columns
INDENT = 4  # of the cells below their row
NARROWEST = 8  # a narrower wrapped column is unreadable
LONGEST_WORD = 24  # a longer word is folded, or it would leave no room for other columns
LONGEST_RULE = 160  # below the headings; a table in a file may be far wider


@dataclass(frozen=True)
class Column:
    """One column: only elastic columns are wrapped; optional ones move below the row before
    others do.
    """

    name: str
    right: bool = False
    elastic: bool = False
    optional: bool = False
    least: int = NARROWEST  # an elastic column with less room moves below the row


def number_column(name: str, optional: bool = False) -> Column:
    """A right-aligned column of numbers, which are never wrapped."""
    return Column(name, right=True, optional=optional)


def text_column(name: str, optional: bool = False, least: int = NARROWEST) -> Column:
    """A column of text that may be wrapped."""
    return Column(name, elastic=True, optional=optional, least=least)


@dataclass
class FittedTable:
    """Columns and rows; widths are chosen when it is printed. Empty columns are left out; no line
    ends in spaces.
    """

    columns: Sequence[Column]
    title: str | None = None
    rows: list[tuple[list[Text], StyleType]] = field(default_factory=list)

    def add(self, *cells: str | Text, style: StyleType = "") -> None:
        """Adds a row; text is taken literally, without markup, on one line."""
        assert len(cells) == len(self.columns), (
            f"expected {len(self.columns)} cells, got {len(cells)}"
        )
        self.rows.append(([_one_line(cell) for cell in cells], style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown, widths = self._fit(options.max_width)
        below = [index for index in self._filled() if index not in shown]
        lines = [Text(self.title, style="bold italic")] if self.title else []
        lines += self._line(
            console, [Text(self.columns[index].name) for index in shown], shown, widths, "bold"
        )
        rule = sum(widths[index] for index in shown) + GAP * (len(shown) - 1)
        lines.append(
            Text(
                ("-" if options.ascii_only else "\N{BOX DRAWINGS LIGHT HORIZONTAL}")
                * min(rule, options.max_width, LONGEST_RULE)
            )
        )
        for cells, style in self.rows:
            lines += self._line(console, [cells[index] for index in shown], shown, widths, style)
            lines += self._below(console, cells, below, options.max_width, style)
        yield Group(*lines)

    def _line(
        self,
        console: Console,
        cells: Iterable[Text],
        shown: list[int],
        widths: dict[int, int],
        style: StyleType,
    ) -> Iterator[Text]:
        """One row: as many lines as its tallest cell has."""
        wrapped = [
            _wrapped(console, cell, widths[index]) for cell, index in zip(cells, shown, strict=True)
        ]
        for number in range(max((len(lines) for lines in wrapped), default=0)):
            line = Text(style=style, no_wrap=True)
            gap = 0
            for lines, index in zip(wrapped, shown, strict=True):
                part = lines[number] if number < len(lines) else Text()
                blanks = widths[index] - part.cell_len
                line.append(" " * (gap + (blanks if self.columns[index].right else 0))).append_text(
                    part
                )
                gap = GAP + (0 if self.columns[index].right else blanks)
            line.rstrip()
            yield line

    def _below(
        self, console: Console, cells: list[Text], below: list[int], room: int, style: StyleType
    ) -> Iterator[Text]:
        """The cells that had no room in a row, side by side and wrapped, without empty ones."""
        facts = [
            Text.assemble(f"{self.columns[index].name}: ", cells[index])
            for index in below
            if cells[index].plain.strip(" -")
        ]
        for line in _flowed(console, facts, max(NARROWEST, room - INDENT)):
            yield Text(" " * INDENT, style=style, no_wrap=True).append_text(line)

    def _fit(self, room: int) -> tuple[list[int], dict[int, int]]:
        """The columns that fit in the rows, and the width of each."""
        natural = [
            max([len(column.name), *(cells[index].cell_len for cells, _ in self.rows)])
            for index, column in enumerate(self.columns)
        ]
        least = [self._least(index, natural[index]) for index in range(len(self.columns))]
        shown = self._filled()
        while (
            len(shown) > 1 and sum(least[index] for index in shown) + GAP * (len(shown) - 1) > room
        ):
            shown.remove(
                max(
                    shown[1:], key=lambda index: (self._move_priority(index, natural[index]), index)
                )
            )
        return shown, self._widths(shown, natural, least, room)

    def _filled(self) -> list[int]:
        """The first column and all that are not empty."""
        return [
            index
            for index in range(len(self.columns))
            if index == 0 or any(cells[index].plain for cells, _ in self.rows)
        ]

    def _least(self, index: int, natural: int) -> int:
        """The width below which a column moves below its rows: text and headings can wrap between
        words, numbers cannot.
        """
        column = self.columns[index]
        head = max(len(word) for word in column.name.split())
        if not column.elastic:
            return (
                max(head, *(cells[index].cell_len for cells, _ in self.rows)) if self.rows else head
            )
        longest = max(
            (len(word) for cells, _ in self.rows for word in cells[index].plain.split()), default=0
        )
        return min(natural, max(column.least, head, min(longest, LONGEST_WORD)))

    def _move_priority(self, index: int, natural: int) -> int:
        """The priority for moving below the row: sentences first, then optional columns, other
        text, numbers.
        """
        column = self.columns[index]
        if column.elastic and natural > column.least > NARROWEST:
            return 3
        return 2 if column.optional else 1 if column.elastic else 0

    def _widths(
        self, shown: list[int], natural: list[int], least: list[int], room: int
    ) -> dict[int, int]:
        """The columns share the width that is left; those that need least are served first."""
        wanted = sorted(shown, key=lambda index: natural[index] - least[index])
        left = max(0, room - GAP * (len(shown) - 1) - sum(least[index] for index in shown))
        widths = {}
        for position, index in enumerate(wanted):
            more = min(natural[index] - least[index], left // (len(wanted) - position))
            widths[index] = min(least[index] + more, room)
            left -= more
        return widths


def _wrapped(console: Console, cell: Text, width: int) -> list[Text]:
    """The lines of a cell, broken at spaces; only a word longer than a line is split."""
    if cell.cell_len <= width:
        return [cell]
    lines = list(cell.wrap(console, width, overflow="fold"))
    for line in lines:
        line.rstrip()
    return lines


def _flowed(console: Console, facts: Sequence[Text], room: int) -> Iterator[Text]:
    """`facts` side by side while they fit, else on lines of their own."""
    line = Text()
    for fact in facts:
        if line and line.cell_len + GAP + fact.cell_len <= room:
            line = line.append(" " * GAP).append_text(fact)
            continue
        if line:
            yield from _wrapped(console, line, room)
        line = fact
    if line:
        yield from _wrapped(console, line, room)


def _one_line(cell: str | Text) -> Text:
    return cell if isinstance(cell, Text) else Text(" ".join(printable(cell).split()))
