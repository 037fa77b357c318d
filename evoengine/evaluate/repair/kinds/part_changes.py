"""A value in place of which a part of it was meant: two operations are too many."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.term_changes import sorts_between, spots_of
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_PARTS = 4  # of an expression
_LONGEST = 40  # tokens

Range = tuple[int, int]


def part_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Each value replaced by the operands of its operands: min(max(i, 0), n) by i, (a + 1) % n by
    a; a call by the square of its argument, and a factor by its square.
    """
    for first, last in spots_of(code):
        if not 2 < last - first < _LONGEST:
            continue
        for part in _parts(code, (first, last)):
            for begin, end in _parts(code, part):
                text = code.tokens.source(begin, end)
                if text and code.tokens.kind(begin) != "number":
                    yield code.replaced(first, last, f"({text})", "two operations too many")
    yield from _squares(code)


def _parts(code: KernelCode, pair: Range) -> list[Range]:
    """The operands of the last operation of an expression, or the arguments of a call."""
    tokens, (first, last) = code.tokens, pair
    while tokens.text(first) == "(" and tokens.partners.get(first) == last:
        first, last = first + 1, last - 1
    operators = [
        place
        for place in range(first + 1, last)
        if tokens.enclosing[place] == tokens.enclosing[first] and code.extents.is_binary(place)
    ]
    for place in reversed(operators):
        left, right = code.extents.operand_before(place), code.extents.operand_behind(place)
        if left[0] == first and right[1] == last:
            return [left, right]
    is_call = tokens.kind(first) == "name" and tokens.text(first + 1) == "("
    if is_call and tokens.partners.get(first + 1) == last:
        return code.extents.arguments(first + 1)[:_MOST_PARTS]
    return []


def _squares(code: KernelCode) -> Iterator[SourceChange]:
    """|x| where x * x was meant, and an element or a member that is one factor and not two."""
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) != "*" or not code.extents.is_binary(position):
            continue
        for first, last in (
            code.extents.operand_before(position),
            code.extents.operand_behind(position),
        ):
            is_part = first < last == code.extents.postfix(first) and code.function_places[first]
            text = tokens.source(first, last) if is_part else ""
            own = code.names.at(first) if is_part else None
            is_float = "[" in text or (own is not None and own.sort.startswith(("float", "double")))
            if is_float and sorts_between(code, first, last) & {"float", "array"}:
                yield code.inserted(last, f" * {text}", "square of a factor missing")
    for place in range(len(tokens)):
        if tokens.text(place) in ("fabsf", "sqrtf", "abs", "fabs") and code.function_places[place]:
            for first, last in code.extents.arguments(place + 1)[:1]:
                text = tokens.source(first, last)
                end = tokens.partners[place + 1]
                yield code.replaced(place, end, f"(({text}) * ({text}))", "square of it missing")
