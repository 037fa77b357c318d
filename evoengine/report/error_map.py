"""The error over an output in the characters of its map, for a terminal."""

from __future__ import annotations

from itertools import groupby

from rich.text import Text

from evoengine.records import ErrorMap

NOT_FINITE, UNWRITTEN, RIGHT = "!", "x", "."
_TERMINAL_COLUMNS, _TERMINAL_ROWS = 64, 24
_STYLES = {RIGHT: "green", NOT_FINITE: "magenta", UNWRITTEN: "bold"}


def terminal_map(shown: ErrorMap) -> Text:
    """The map in characters, each the worst of the cells that it stands for."""
    rows = _thinned(shown.cells, _TERMINAL_ROWS)
    text = Text()
    for number, row in enumerate(rows):
        cells = _thinned(tuple(row), _TERMINAL_COLUMNS)
        for style, alike in groupby(cells, lambda cell: _STYLES.get(cell, "red")):
            text.append("".join(alike), style=style)
        if number + 1 < len(rows):
            text.append("\n")
    return text


_ORDER = f"{RIGHT}0123456789{NOT_FINITE}{UNWRITTEN}"


def _thinned(cells: tuple[str, ...], most: int) -> list[str]:
    """At most so many cells, or rows of cells; of several the worst, place by place."""
    step = -(-len(cells) // most)
    groups = [cells[start : start + step] for start in range(0, len(cells), step)]
    return [
        "".join(max(column, key=_ORDER.index) for column in zip(*group, strict=True))
        for group in groups
    ]
