"""The error over an output as a picture: SVG for files, characters for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rich.text import Text

from evoengine.records import ErrorMap, Forensics

CELL_PX = 8
MARGIN_PX = 64
NOT_FINITE, UNWRITTEN, RIGHT = "!", "x", "."
# from just beyond the gate to 1024 times it
COLOURS = (
    "#fde8c4", "#fdd49e", "#fdbb84", "#fc9f68", "#fc8d59", "#ef6548", "#e34a33", "#d7301f",
    "#b30000", "#7f0000",
)  # fmt: skip
_RIGHT, _NOT_FINITE, _UNWRITTEN = "#eef3ee", "#6a3d9a", "#222222"
_TERMINAL_COLUMNS, _TERMINAL_ROWS = 64, 24
_STYLES = {RIGHT: "green", NOT_FINITE: "magenta", UNWRITTEN: "bold"}


def svg_of(found: Forensics, name: str) -> str:
    """The map of a wrong output, as the text of an SVG file; "" where there is none. `name` is what
    its title says, beside the case.
    """
    shown = found.error_map
    if shown is None or not shown.cells:
        return ""
    height, width = len(shown.cells), max(len(row) for row in shown.cells)
    right = MARGIN_PX + width * CELL_PX
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="11"'
        f' width="{max(right + MARGIN_PX, 560)}" height="{height * CELL_PX + 3 * MARGIN_PX}">',
        f"<title>{escape(_title(found, name))}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{MARGIN_PX}" y="20" font-size="13">{escape(_title(found, name))}</text>',
        f'<text x="{MARGIN_PX}" y="38">{escape(_first(found))}</text>',
        f'<text x="{MARGIN_PX}" y="56">columns: {escape(shown.column_axis)}, 0 to'
        f" {shown.columns - 1}; rows: {escape(_rows(shown))}</text>",
        *_cells(shown),
        *_legend(MARGIN_PX * 2 + height * CELL_PX),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _title(found: Forensics, name: str) -> str:
    return f"{name}: error of {found.output} in case {found.case}, {found.distribution} inputs"


def _first(found: Forensics) -> str:
    return found.diagnoses[0].sentence if found.diagnoses else ""


def _rows(shown: ErrorMap) -> str:
    named = " x ".join(shown.row_axes) or shown.column_axis
    return f"{named}, 0 to {shown.rows - 1}"


def _cells(shown: ErrorMap) -> Iterator[str]:
    """Equal neighbours of a row are one rectangle."""
    for place, row in enumerate(shown.cells):
        start = 0
        while start < len(row):
            stop = start
            while stop < len(row) and row[stop] == row[start]:
                stop += 1
            yield (
                f'<rect x="{MARGIN_PX + start * CELL_PX}" y="{MARGIN_PX + place * CELL_PX}"'
                f' width="{(stop - start) * CELL_PX}" height="{CELL_PX}"'
                f' fill="{colour_of(row[start])}"/>'
            )
            start = stop


def colour_of(cell: str) -> str:
    """The colour of one cell."""
    if cell.isdigit():
        return COLOURS[int(cell)]
    return {NOT_FINITE: _NOT_FINITE, UNWRITTEN: _UNWRITTEN}.get(cell, _RIGHT)


def _legend(top: int) -> Iterator[str]:
    named = [
        (_RIGHT, "within the gate"),
        (COLOURS[0], "up to 2 times the gate"),
        (COLOURS[4], "32"),
        (COLOURS[9], "1024 or more"),
        (_NOT_FINITE, "not finite"),
        (_UNWRITTEN, "never written"),
    ]
    left = MARGIN_PX
    for colour, words in named:
        yield f'<rect x="{left}" y="{top - 10}" width="10" height="10" fill="{colour}"/>'
        yield f'<text x="{left + 14}" y="{top}">{words}</text>'
        left += 24 + 6 * len(words)


def terminal_map(shown: ErrorMap) -> Text:
    """The map in characters, each the worst of the cells that it stands for."""
    rows = _thinned(shown.cells, _TERMINAL_ROWS)
    text = Text()
    for number, row in enumerate(rows):
        for cell in _thinned(tuple(row), _TERMINAL_COLUMNS):
            text.append(cell, style=_STYLES.get(cell, "red"))
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
