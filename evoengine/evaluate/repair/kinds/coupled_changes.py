"""Mistakes that are written down in several places alike: a pitch, both sides of a square, a layout
of two values.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_USES = 12  # of a name that is exchanged everywhere in a function
_PLACES = ("pointer", "array")
_NEAREST = 8  # variables, the last declared first


def coupled_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Equal expressions changed alike."""
    yield from _in_a_statement(code)
    yield from _in_a_function(code)
    yield from _squares(code)
    yield from _layouts_of_two(code)


def together(changes: list[SourceChange], kind: str) -> SourceChange:
    """Several changes made as one."""
    first, *others = changes
    return SourceChange(first.start, first.end, first.new, kind, tuple(others))


def _in_a_statement(code: KernelCode) -> Iterator[SourceChange]:
    """A name or a number that a statement has several times in like surroundings."""
    for first, last in code.statements:
        for places in _alike(code, first, last):
            position = places[0]
            for new in _instead(code, position):
                changes = [code.replaced(place, place, new, "") for place in places]
                yield together(changes, "name for another, in a whole statement")


def _alike(code: KernelCode, first: int, last: int) -> Iterator[list[int]]:
    """The places of each name, and of each whole number that is an index of one array, where a
    statement has two or more of them.
    """
    tokens = code.tokens
    uses: dict[tuple[str, str], list[int]] = {}
    for place in range(first, last + 1):
        is_number = tokens.kind(place) == "number" and tokens.text(place).isdigit()
        own = code.names.at(place) if tokens.kind(place) == "name" else None
        is_name = own is not None and own.position != place and own.sort not in _PLACES
        if is_name or (is_number and tokens.text(place - 1) == "["):
            before = "" if is_name else tokens.text(place - 2)  # the array, or ] of a first index
            uses.setdefault((tokens.text(place), before), []).append(place)
    yield from (places for places in uses.values() if len(places) > 1)


def _instead(code: KernelCode, position: int) -> Iterator[str]:
    """What may stand in place of a name or number."""
    own = code.names.at(position) if code.tokens.kind(position) == "name" else None
    sort = own.sort if own is not None else "int"
    for item in code.visible(position, sort):
        if own is None or item.name != own.name:
            yield item.name
    if own is None:
        for grid in ("threadIdx.y", "threadIdx.x"):
            if grid in code.tokens.code:
                yield grid


def _in_a_function(code: KernelCode) -> Iterator[SourceChange]:
    """A divisor, factor or bound that a function has several times, another in all of them."""
    tokens = code.tokens
    uses: dict[tuple[str, int, str], list[int]] = {}
    for place, last, sort in code.atoms():
        own = code.names.at(place)
        if place != last or sort != "int" or own is None or not code.function_places[place]:
            continue
        before = tokens.text(place - 1)
        if before in ("*", "/", "%", "<", "<="):
            uses.setdefault((own.name, own.position, before), []).append(place)
    for (name, _, _), places in uses.items():
        if not 1 < len(places) <= _MOST_USES:
            continue
        for item in code.visible(places[0], "int"):
            sized = item.is_parameter or item.name.isupper()
            if item.name != name and sized and all(item.last >= place for place in places):
                changes = [code.replaced(place, place, item.name, "") for place in places]
                yield together(changes, "name for another, in all places")


def _squares(code: KernelCode) -> Iterator[SourceChange]:
    """x * x made y * y, or (x - y) * (x - y)."""
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) != "*" or not code.extents.is_binary(position):
            continue
        left, right = code.extents.operand_before(position), code.extents.operand_behind(position)
        if left[0] > left[1] or right[0] > right[1] or not code.function_places[position]:
            continue
        text = tokens.source(*left)
        if text != tokens.source(*right) or code.in_index(position):
            continue
        for item in code.visible(position, "float"):
            if item.name == text:
                continue
            new = f"{item.name} * {item.name}"
            yield code.replaced(left[0], right[1], new, "square of another")
            new = f"({text} - {item.name}) * ({text} - {item.name})"
            yield code.replaced(left[0], right[1], new, "square not centred")


def _layouts_of_two(code: KernelCode) -> Iterator[SourceChange]:
    """a[i], a[N + i] made a[2 * i], a[2 * i + 1], and the other way round."""
    tokens = code.tokens
    for (one, first, last), (other, begin, end) in pairwise(code.indices):
        if tokens.text(one) != tokens.text(other) or begin - last > 40:
            continue
        near, far = tokens.source(first, last), tokens.source(begin, end)
        doubled = near.removeprefix("2 * ").strip()
        if near.startswith("2 * ") and far.replace(" ", "") == f"{near} + 1".replace(" ", ""):
            yield from _as_planes(code, (first, last), (begin, end), doubled)
        elif near in far and far != near:
            pair = [
                code.replaced(first, last, f"2 * ({near})", ""),
                code.replaced(begin, end, f"2 * ({near}) + 1", ""),
            ]
            yield together(pair, "layout of two")


def _as_planes(
    code: KernelCode, near: tuple[int, int], far: tuple[int, int], index: str
) -> Iterator[SourceChange]:
    for item in code.visible(near[0], "int"):
        if item.is_parameter or item.name.isupper():
            pair = [
                code.replaced(*near, index, ""),
                code.replaced(*far, f"{item.name} + {index}", ""),
            ]
            yield together(pair, "layout of two")
