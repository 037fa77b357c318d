"""Sizes of a launch plan that are not rounded up to whole tiles, and stages of shared memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kinds.header_changes import TUNABLE, entries_of
from evoengine.evaluate.repair.source_change import SourceChange

_LET = re.compile(r"^[ \t]+([A-Z]\w*):[ \t]*([A-Z]\w*)[ \t]*$", re.MULTILINE)
_SHARE = re.compile(r"^[ \t]+[A-Z]\w*:[ \t]*\"?(ceil_div\([^()\n]*\))", re.MULTILINE)
_TILES = re.compile(r"(?://|ceil_div\([^()]*,|round_up\([^()]*,) *(\w+)")
_SHARED = re.compile(r"\bshared(?:_bytes)?:[ \t]*\"?(\d+) \*")
_STAGES = re.compile(r"\b(?:STAGES|RING|BUFFERS|SLOTS) = (\d+)")
_GRID = re.compile(r"\bgrid:[ \t]*\[([^\]\n]*)\]")
_ROUNDED_DOWN = re.compile(r"\b(\w+) // (\w+) // (\w+) \* \3\b")
_MOST_TILES = 4


def plan_rounding_changes(header: str, code: str) -> Iterator[SourceChange]:
    """`COLUMNS: N` made `round_up(N, 64)`; `shared: 3 * 16384` one for each stage."""
    tiles = list(dict.fromkeys(_TILES.findall(header)))[:_MOST_TILES]
    for found in _LET.finditer(header):
        for tile in tiles:
            for function in ("round_up", "ceil_div"):
                new = f"{function}({found[2]}, {tile})"
                yield SourceChange(*found.span(2), new, "size of the plan not rounded up")
    yield from _broken_tiles(header, tiles)
    yield from _shares(header, code)
    for found in _ROUNDED_DOWN.finditer(header):
        new = f"round_up(ceil_div({found[1]}, {found[2]}), {found[3]})"
        yield SourceChange(*found.span(), new, "share of the plan in whole tiles rounded down")
    stages = _STAGES.findall(code)
    for found in _SHARED.finditer(header):
        value = int(found[1])
        for other in dict.fromkeys((*stages, str(value + 1), str(value - 1))):
            if other not in (found[1], "0"):
                yield SourceChange(*found.span(1), other, "stages of shared memory")


def _broken_tiles(header: str, tiles: list[str]) -> Iterator[SourceChange]:
    """`CHUNK: ceil_div(S, PARTS)` made whole tiles: `round_up(ceil_div(S, PARTS), TILE_KEYS)`."""
    names = list(dict.fromkeys([*TUNABLE.findall(header)[:_MOST_TILES], *tiles]))
    for found in _SHARE.finditer(header):
        for name in names:
            if not re.search(rf"\b{name}\b", found[1]):
                new = f"round_up({found[1]}, {name})"
                yield SourceChange(*found.span(1), new, "size of the plan not rounded up")


def _shares(header: str, code: str) -> Iterator[SourceChange]:
    """`ceil_div(M, 16 * W)` made `ceil_div(M, 8 * W)`, where a kernel takes eight a block."""
    for grid in _GRID.finditer(header):
        for (begin, end), axis in zip(entries_of(grid[1]), "xyz", strict=False):
            taken = rf"\bblockIdx\.{axis}(?: \* (\d+)|\b[^;,]*\) \* (\d+))"
            shares = [one or other for one, other in re.findall(taken, code)]
            for found in re.finditer(r", *(\d+)\b", grid[1][begin:end]):
                start = grid.start(1) + begin + found.start(1)
                for share in dict.fromkeys(shares):
                    if share != found[1]:
                        span = start, start + len(found[1])
                        yield SourceChange(*span, share, "share of a block in the plan")
