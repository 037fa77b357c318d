"""Elements of arrays where a variable was meant, and pointers moved by what another is moved by."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.expression_extents import PRECEDENCE
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_VARIABLES = 8  # the last declared first
_MOST_NAMES = 10
_SHORTEST_TERM = 2  # tokens of an offset that a variable may already hold

Range = tuple[int, int]


def element_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Elements replaced by variables, offsets by variables or by those of other pointers."""
    yield from _elements(code)
    yield from _offsets(code)
    yield from _held(code)


def _elements(code: KernelCode) -> Iterator[SourceChange]:
    """x[i] made value, and wherever else the statement has x[i]."""
    tokens = code.tokens
    uses: dict[tuple[int, str], list[Range]] = {}
    for name, first, last in code.indices:
        end = last + 1
        is_first = tokens.text(name - 1) not in (".", "->", "&") and tokens.text(first - 2) != "]"
        is_read = tokens.text(end + 1) not in ("=", "+=", "-=", "*=", "/=", "[", "++", ".")
        if is_first and is_read:
            key = code.extents.statement(name)[0], tokens.source(name, end)
            uses.setdefault(key, []).append((name, end))
    for pairs in uses.values():
        begin = code.extents.statement(pairs[0][0])[0]
        for item in code.visible(pairs[0][0], "float")[:_MOST_VARIABLES]:
            is_new = code.extents.statement(item.position)[1] == begin - 1
            near = ", of the statement before" if is_new else ""
            for pair in pairs:
                yield code.replaced(*pair, item.name, f"name for an element{near}")
            if len(pairs) > 1:
                changes = [code.replaced(*pair, item.name, "") for pair in pairs]
                yield together(changes, "name for an element, in a whole statement")


def _offsets(code: KernelCode) -> Iterator[SourceChange]:
    """p + a made p + b, where another pointer has + b."""
    found: dict[str, Range] = {}
    places = list(_moved(code))
    for _, first, last in places:
        found.setdefault(code.tokens.source(first, last), (first, last))
    for _, first, last in places:
        own = code.tokens.source(first, last)
        for text, pair in found.items():
            if text != own and code.can_stand(*pair, first):
                yield code.replaced(first, last, text, "offset of another pointer")


def _moved(code: KernelCode) -> Iterator[tuple[int, int, int]]:
    """Each + behind a pointer, with the whole of what is added."""
    tokens = code.tokens
    for place in range(1, len(tokens)):
        own = code.names.at(place - 1) if tokens.kind(place - 1) == "name" else None
        if tokens.text(place) != "+" or own is None or own.sort not in ("pointer", "array"):
            continue
        last = code.extents.last_of(place, PRECEDENCE["+"] - 1)
        if place < last:
            yield place, place + 1, last


def _held(code: KernelCode) -> Iterator[SourceChange]:
    """The first terms of a place replaced by a variable, which may hold them."""
    tokens = code.tokens
    spots = [(first, last) for _, first, last in (*code.indices, *_moved(code))]
    for first, last in dict.fromkeys(spots):
        ends = [
            place - 1
            for place in range(first, last + 1)
            if tokens.text(place) == "+"
            and tokens.enclosing[place] == tokens.enclosing[first]
            and code.extents.is_binary(place)
        ]
        for end in [*ends, last]:
            if end - first < _SHORTEST_TERM:
                continue
            own = {tokens.text(place) for place in range(first, end + 1)}
            items = [item for item in code.visible(first, "int") if item.name not in own]
            items = [item for item in items if not item.is_parameter and not item.name.isupper()]
            for item in items[:_MOST_NAMES]:
                yield code.replaced(first, end, item.name, "name for an offset")
