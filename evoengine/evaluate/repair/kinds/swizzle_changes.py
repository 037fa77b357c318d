"""Swizzles: rows that one stays in, and offsets that are added behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.ahead_changes import functions_with
from evoengine.evaluate.repair.source_change import SourceChange

_ROWS = (4, 8, 2)  # pieces of a row, the likeliest first
_XOR = re.compile(r"^\^$")
_TIMES = re.compile(r"(.+) \* \w+")


def swizzle_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Swizzles that take fewer bits of the row, and that an offset goes through as well."""
    yield from _wide(code)
    yield from _behind_a_call(code)
    yield from _behind_brackets(code)


def _signs(code: KernelCode) -> Iterator[int]:
    """The places of `^` between two values."""
    tokens = code.tokens
    for place in range(len(tokens)):
        if tokens.text(place) == "^" and code.extents.is_binary(place):
            yield place


def _wide(code: KernelCode) -> Iterator[SourceChange]:
    """`piece ^ phase` made `piece ^ (phase & 3)`: a row that has four pieces is not left."""
    for place in _signs(code):
        for first, last in (
            code.extents.operand_before(place),
            code.extents.operand_behind(place),
        ):
            text = code.tokens.source(first, last) if first <= last else ""
            if not text or text.isdigit():
                continue
            for pieces in _ROWS:
                new = f"(({text}) & {pieces - 1})"
                yield code.replaced(first, last, new, "swizzle wider than a row")


def _behind_a_call(code: KernelCode) -> Iterator[SourceChange]:
    """`spot(row, p) + x * 8` made `spot(row, p + x)`, where the function has a swizzle."""
    tokens = code.tokens
    swizzling = functions_with(code, _XOR)
    for place in range(len(tokens)):
        opening = place + 1
        closing = tokens.partners.get(opening, 0)
        if tokens.text(place) not in swizzling or tokens.text(opening) != "(":
            continue
        for summand, last in _summands(code, closing):
            new = f" + {summand})"
            yield code.replaced(closing, last, new, "offset outside the swizzle")


def _behind_brackets(code: KernelCode) -> Iterator[SourceChange]:
    """`(p ^ row % 8) * 8 + x * 8` made `((p + x) ^ row % 8) * 8`."""
    tokens = code.tokens
    for place in _signs(code):
        opening = tokens.enclosing[place]
        first, behind = code.extents.operand_before(place)
        if opening < 0 or tokens.text(opening) != "(" or tokens.kind(opening - 1) == "name":
            continue
        closing = tokens.partners[opening]
        end = closing
        if tokens.text(closing + 1) == "*" and code.extents.is_binary(closing + 1):
            end = code.extents.operand_behind(closing + 1)[1]
        for summand, last in _summands(code, end):
            own, rest = tokens.source(first, behind), tokens.source(place, end)
            new = f"({own} + {summand}) {rest}"
            yield code.replaced(first, last, new, "offset outside the swizzle")


def _summands(code: KernelCode, end: int) -> Iterator[tuple[str, int]]:
    """What is added behind the token at `end`, without and with its factor; and its last token."""
    sign = end + 1
    if code.tokens.text(sign) != "+" or not code.extents.is_binary(sign):
        return
    first, last = code.extents.operand_behind(sign)
    text = code.tokens.source(first, last)
    bare = _TIMES.fullmatch(text)
    for summand in ([bare[1]] if bare else []) + [text]:
        yield summand, last
