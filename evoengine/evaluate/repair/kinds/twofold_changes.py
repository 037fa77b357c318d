"""Mistakes that are made in two places at once: both ends of a range of lanes, the factors of two
terms, equal arguments of a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

Range = tuple[int, int]


def twofold_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Ranges of lanes moved, factors of two terms exchanged."""
    yield from _ranges_of_lanes(code)
    yield from _factors(code)


def equal_arguments(code: KernelCode, changes: Iterable[SourceChange]) -> Iterator[SourceChange]:
    """Each change of a whole argument made in all equal arguments of its call, too: both zeros of
    `make_float2(0.0f, 0.0f)`.
    """
    groups: dict[tuple[int, int], list[Range]] = {}
    for position in range(len(code.tokens)):
        if code.tokens.text(position) in "({" and position in code.tokens.partners:
            arguments = code.extents.arguments(position)
            for own in arguments:
                text = code.tokens.source(*own)
                others = [one for one in arguments if code.tokens.source(*one) == text]
                if len(others) > 1 and own == others[0]:
                    groups[code.tokens.span(*own)] = others[1:]
    for change in changes:
        span = change.start - code.offset, change.end - code.offset
        if span in groups and not change.others:
            equal = [code.replaced(*one, change.new, change.kind) for one in groups[span]]
            yield together([change, *equal], change.kind)


def _ranges_of_lanes(code: KernelCode) -> Iterator[SourceChange]:
    """`for (int mask = 1; mask < 4; mask *= 2)` made one from 2 up to 8, and back: other lanes of
    as many.
    """
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) != "for" or position + 1 not in tokens.partners:
            continue
        closing = tokens.partners[position + 1]
        step = {tokens.text(place) for place in range(position + 2, closing)}
        if not step & {"*=", "/=", ">>=", "<<="}:
            continue
        numbers = [
            place
            for place in range(position + 2, closing)
            if tokens.text(place).isdigit()
            and tokens.text(place - 1) not in ("*=", "/=", ">>=", "<<=")
        ]
        if len(numbers) != 2:
            continue
        values = [int(tokens.text(place)) for place in numbers]
        doubled = [2 * value for value in values]
        halved = [value // 2 for value in values]
        for new in (doubled, halved):
            if new != values and (all(new) or values[-1] == 0):
                changes = [
                    code.replaced(place, place, str(value), "")
                    for place, value in zip(numbers, new, strict=True)
                ]
                yield together(changes, "lanes of another distance")


def _factors(code: KernelCode) -> Iterator[SourceChange]:
    """a * x + b * y made b * x + a * y."""
    tokens, extents = code.tokens, code.extents
    for position in range(len(tokens)):
        if tokens.text(position) not in ("+", "-") or not extents.is_binary(position):
            continue
        if not code.function_places[position]:
            continue
        left = _first_factor(code, extents.operand_before(position))
        right = _first_factor(code, extents.operand_behind(position))
        if left is None or right is None:
            continue
        one, other = tokens.source(*left), tokens.source(*right)
        if one != other:
            changes = [code.replaced(*left, other, ""), code.replaced(*right, one, "")]
            yield together(changes, "factors of two terms exchanged")


def _first_factor(code: KernelCode, term: Range) -> Range | None:
    """The first factor of a product; None of another term."""
    first, last = term
    for place in range(first + 1, last):
        is_outside = code.tokens.enclosing[place] == code.tokens.enclosing[first]
        if code.tokens.text(place) == "*" and is_outside and code.extents.is_binary(place):
            begin, end = code.extents.operand_before(place)
            return (begin, end) if begin == first else None
    return None
