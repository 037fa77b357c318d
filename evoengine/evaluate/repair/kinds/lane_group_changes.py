"""Lanes that a reduction joins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_SHUFFLE = re.compile(r"__shfl_(?:xor|down)_sync")
_FIRST = (1, 2, 4, 8, 16)
_ENDS = (4, 8, 16, 32)
_MOST_CALLS = 40
_MOST_SIZES = 12


def lane_group_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Other distances of shuffles."""
    yield from _loops(code)
    yield from _calls(code)


def _loops(code: KernelCode) -> Iterator[SourceChange]:
    """`for (int step = 1; step < 4; step *= 2)` made `step = 4; step < 32`: the lanes of a column
    and not those of a row.
    """
    tokens = code.tokens
    for _, begins, ends, closing in code.counted_loops():
        first, last = code.body(closing)
        begin, end = begins - 1, ends - 1
        is_doubled = re.search(r"\*= 2|<<= 1", tokens.source(ends + 1, closing - 1))
        yield from _ends_of_groups(code, begins, ends, closing)
        has_numbers = tokens.kind(begin) == tokens.kind(end) == "number"
        if not (is_doubled and has_numbers and _SHUFFLE.search(tokens.source(first, last))):
            continue
        for one, other in product(_FIRST, _ENDS):
            if one < other and tokens.text(begin) != str(one) and tokens.text(end) != str(other):
                changes = [
                    code.replaced(begin, begin, str(one), ""),
                    code.replaced(end, end, str(other), ""),
                ]
                yield together(changes, "lanes of another group joined")


def _ends_of_groups(
    code: KernelCode, begins: int, ends: int, closing: int
) -> Iterator[SourceChange]:
    """`for (int step = 16; step > 0; step /= 2)` made `step >= TEAM`: the lanes of a team hold
    other columns.
    """
    tokens = code.tokens
    first, last = code.body(closing)
    is_halved = re.search(r"/= 2|>>= 1", tokens.source(ends + 1, closing - 1))
    condition = re.fullmatch(r"(\w+) (?:> 0|>= 1)|(\w+)", tokens.source(begins + 1, ends - 1))
    if not is_halved or not condition or not _SHUFFLE.search(tokens.source(first, last)):
        return
    for size in code.sizes(begins)[:_MOST_SIZES]:
        new = f"{condition[1] or condition[2]} >= {size}"
        yield code.replaced(begins + 1, ends - 1, new, "lanes of another group joined")


def _calls(code: KernelCode) -> Iterator[SourceChange]:
    """`__shfl_xor_sync(m, x, 1)` and `(m, x, 2)` made 4 and 8, or 8 and 16, and so on."""
    tokens = code.tokens
    found: dict[int, list[int]] = {}
    for place in range(len(tokens)):
        if _SHUFFLE.fullmatch(tokens.text(place)) and code.function_places[place]:
            first, last = (*code.extents.arguments(place + 1), (0, 0), (0, 0), (0, 0))[2]
            if first == last > 0 and tokens.text(first).isdigit():
                found.setdefault(code.function_of(place), []).append(first)
    for places in found.values():
        distances = sorted({int(tokens.text(place)) for place in places})
        if len(places) > _MOST_CALLS or len(distances) < 2:
            continue
        for factor in (2, 4, 8):
            for is_larger in (True, False):
                changed = [it * factor if is_larger else it // factor for it in distances]
                if min(changed) >= 1 and max(changed) <= _FIRST[-1]:
                    new = dict(zip(distances, changed, strict=True))
                    changes = [
                        code.replaced(place, place, str(new[int(tokens.text(place))]), "")
                        for place in places
                    ]
                    yield together(changes, "lanes of another group joined")
