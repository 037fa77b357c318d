"""Indices of another layout: axes in another order, rows for columns, quotients for remainders."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_SIZES = 6
_MOST_BITS = 6  # of a mask of lanes

Range = tuple[int, int]


def layout_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every index whose axes may stand in another order."""
    yield from _axes(code)
    yield from _turned(code)
    yield from _quotients(code)
    yield from _masks(code)


def _axes(code: KernelCode) -> Iterator[SourceChange]:
    """(p * A + a) * B + b made (p * B + b) * A + a: batch, head, row, where batch, row, head was
    meant.
    """
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) != "+" or not code.function_places[position]:
            continue
        outer = _product_and_sum(code, position)
        if outer is None or tokens.text(outer[0][0]) != "(":
            continue
        inside, size, rest = outer
        if tokens.partners.get(inside[0]) != inside[1]:
            continue
        for place in range(inside[0] + 1, inside[1]):
            if tokens.text(place) != "+" or tokens.enclosing[place] != inside[0]:
                continue
            inner = _product_and_sum(code, place)
            if inner is None or inner[0][0] != inside[0] + 1 or inner[2][1] != inside[1] - 1:
                continue
            begin, own_size, own_rest = (tokens.source(*pair) for pair in inner)
            new = (
                f"({begin} * {tokens.source(*size)} + {tokens.source(*rest)}) * {own_size}"
                f" + {own_rest}"
            )
            yield code.replaced(inside[0], rest[1], new, "axes of an index exchanged")


def _product_and_sum(code: KernelCode, plus: int) -> tuple[Range, Range, Range] | None:
    """Of x * N + y the places of x, N and y; None of another sum."""
    if not code.extents.is_binary(plus):
        return None
    tokens = code.tokens
    left, right = code.extents.operand_before(plus), code.extents.operand_behind(plus)
    if left[1] - left[0] < 2 or right[0] > right[1]:
        return None
    for place in range(left[1], left[0], -1):
        if tokens.text(place) == "*" and tokens.enclosing[place] == tokens.enclosing[plus]:
            if code.extents.operand_before(place)[0] != left[0]:
                return None
            return (left[0], place - 1), (place + 1, left[1]), right
    return None


def _turned(code: KernelCode) -> Iterator[SourceChange]:
    """x[i][j] made x[j][i], wherever a statement has it."""
    tokens = code.tokens
    for first, last in code.statements:
        found: dict[str, list[Range]] = {}
        for name, begin, end in code.indices:
            opening = end + 2
            if not first <= name <= last or tokens.text(begin - 2) == "]":
                continue
            if tokens.text(opening) == "[" and opening in tokens.partners:
                found.setdefault(tokens.source(name, tokens.partners[opening]), []).append(
                    (begin, opening)
                )
        for pairs in found.values():
            changes = []
            for begin, opening in pairs:
                closing = tokens.partners[opening]
                one = tokens.source(begin, opening - 2)
                two = tokens.source(opening + 1, closing - 1)
                if one != two:
                    new = f"{two}][{one}"
                    changes.append(code.replaced(begin, closing - 1, new, ""))
            if len(changes) > 1:  # one alone is a change of an index like others
                yield together(changes, "indices of an array exchanged")


def _quotients(code: KernelCode) -> Iterator[SourceChange]:
    """a % n made a / m, and the other way round; with bits a & 1 made a >> 1."""
    tokens = code.tokens
    for position in range(len(tokens)):
        text = tokens.text(position)
        if not code.function_places[position] or not code.extents.is_binary(position):
            continue
        first, last = code.extents.operand_behind(position)
        if first != last:
            continue
        if text in ("/", "%"):
            other = "%" if text == "/" else "/"
            for size in code.sizes(position)[:_MOST_SIZES]:
                if size != tokens.text(first):
                    kind = "quotient for remainder, of another"
                    yield code.replaced(position, last, f"{other} {size}", kind)
        elif text in (">>", "&") and tokens.text(first).rstrip("uU").isdigit():
            number = int(tokens.text(first).rstrip("uU"))
            if text == ">>" and 0 < number <= _MOST_BITS:
                new = f"& {(1 << number) - 1}"
                yield code.replaced(position, last, new, "bits for a quotient")
            elif text == "&" and number & (number + 1) == 0 and number > 0:
                new = f">> {number.bit_length()}"
                yield code.replaced(position, last, new, "bits for a quotient")


def _masks(code: KernelCode) -> Iterator[SourceChange]:
    """x & 7 made x & 15 or x & 3."""
    tokens = code.tokens
    for position in range(1, len(tokens)):
        text = tokens.text(position).rstrip("uU")
        if tokens.text(position - 1) != "&" or not text.isdigit():
            continue
        number = int(text)
        if number <= 0 or number & (number + 1) or not code.function_places[position]:
            continue
        for other in (2 * number + 1, number >> 1):
            if other:
                yield code.replaced(position, position, str(other), "bits of a lane")
