"""Facts by name, and sections of a report."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evoengine.report import format


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
