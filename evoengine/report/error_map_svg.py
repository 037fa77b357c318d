"""The error over an output as a picture: the text of an SVG file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from html import escape

from evoengine.records import ErrorMap, Forensics
from evoengine.report.error_map import NOT_FINITE, UNWRITTEN

CELL_PX = 6
MARGIN_PX = 40
LINE_PX = 16
CAPTION_PX = 340  # of a panel's
LEAST_WIDTH_PX = 660  # of the legend
CHARACTER_PX = 6.2  # at most, on average, of the letters below
# from just beyond the gate to 1024 times it
COLOURS = (
    "#fde8c4", "#fdd49e", "#fdbb84", "#fc9f68", "#fc8d59", "#ef6548", "#e34a33", "#d7301f",
    "#b30000", "#7f0000",
)  # fmt: skip
_RIGHT, _NOT_FINITE, _UNWRITTEN = "#dcebdc", "#6a3d9a", "#222222"
_LEGEND = (
    (_RIGHT, "within the gate"),
    (COLOURS[0], "up to 2 times the gate"),
    (COLOURS[4], "32"),
    (COLOURS[9], "1024 or more"),
    (_NOT_FINITE, "not finite"),
    (_UNWRITTEN, "never written"),
)


def svg_of(found: Forensics, name: str) -> str:
    """The map of a wrong output, as the text of an SVG file; "" where there is none. `name` is what
    its title says, beside the case. A second panel has single elements where a cell stands for
    several.
    """
    shown = found.error_map
    if shown is None or not shown.cells:
        return ""
    panels = [
        max(_columns_of(cells) * CELL_PX, CAPTION_PX)
        for cells in (shown.cells, shown.detail)
        if cells
    ]
    width = max(sum(panels) + MARGIN_PX * (1 + len(panels)), LEAST_WIDTH_PX)
    title = f"{name}: error of {found.output} in case {found.case}, {found.distribution} inputs"
    said = [title, *_wrapped(_first(found), width)]
    top = MARGIN_PX + LINE_PX * (len(said) + 1)
    bottom = top + CELL_PX * max(len(shown.cells), len(shown.detail)) + LINE_PX * 2
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="11"'
        f' width="{width}" height="{bottom + LINE_PX}">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *(_text(MARGIN_PX, MARGIN_PX + LINE_PX * number, line) for number, line in enumerate(said)),
        _text(MARGIN_PX, top - 6, _whole(shown)),
        *_panel(shown.cells, MARGIN_PX, top),
        *_detail(shown, MARGIN_PX * 2 + panels[0], top),
        *_legend(bottom),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _first(found: Forensics) -> str:
    return found.diagnoses[0].sentence if found.diagnoses else ""


def _wrapped(sentence: str, width: int) -> list[str]:
    return textwrap.wrap(sentence, int((width - 2 * MARGIN_PX) / CHARACTER_PX))


def _text(left: int, base: int, words: str) -> str:
    return f'<text x="{left}" y="{base}">{escape(words)}</text>'


def _whole(shown: ErrorMap) -> str:
    rows = " x ".join(shown.row_axes) or shown.column_axis
    return f"rows: {rows}, 0 to {shown.rows - 1}; columns: {shown.column_axis}, 0 to" + (
        f" {shown.columns - 1}"
    )


def _columns_of(cells: tuple[str, ...]) -> int:
    return max(len(row) for row in cells)


def _detail(shown: ErrorMap, left: int, top: int) -> Iterator[str]:
    """The second panel, and its frame in the first one."""
    if not shown.detail:
        return
    rows, columns = len(shown.detail), _columns_of(shown.detail)
    last_row, last_column = shown.detail_row + rows - 1, shown.detail_column + columns - 1
    words = (
        f"framed, element by element: rows {shown.detail_row} to {last_row}, columns"
        f" {shown.detail_column} to {last_column}"
    )
    yield _text(left, top - 6, words)
    yield from _panel(shown.detail, left, top)
    down = CELL_PX * len(shown.cells) / shown.rows
    right = CELL_PX * _columns_of(shown.cells) / shown.columns
    yield (
        f'<rect x="{MARGIN_PX + shown.detail_column * right:g}"'
        f' y="{top + shown.detail_row * down:g}" width="{columns * right:g}"'
        f' height="{max(rows * down, 1):g}" fill="none" stroke="#0090ff" stroke-width="2"/>'
    )


def _panel(cells: tuple[str, ...], left: int, top: int) -> Iterator[str]:
    """One path for each colour; equal neighbours of a row are one rectangle of it."""
    runs: dict[str, list[str]] = {}
    for place, row in enumerate(cells):
        start = 0
        while start < len(row):
            stop = start
            while stop < len(row) and row[stop] == row[start]:
                stop += 1
            runs.setdefault(row[start], []).append(
                f"M{start} {place}h{stop - start}v1h{start - stop}z"
            )
            start = stop
    yield f'<g transform="translate({left} {top}) scale({CELL_PX})" shape-rendering="crispEdges">'
    for cell, found in sorted(runs.items()):
        yield f'<path fill="{colour_of(cell)}" d="{"".join(found)}"/>'
    yield "</g>"


def colour_of(cell: str) -> str:
    """The colour of one cell."""
    if cell.isdigit():
        return COLOURS[int(cell)]
    return {NOT_FINITE: _NOT_FINITE, UNWRITTEN: _UNWRITTEN}.get(cell, _RIGHT)


def _legend(base: int) -> Iterator[str]:
    left = MARGIN_PX
    for colour, words in _LEGEND:
        yield f'<rect x="{left}" y="{base - 10}" width="10" height="10" fill="{colour}"/>'
        yield _text(left + 14, base, words)
        left += 30 + int(CHARACTER_PX * len(words))
