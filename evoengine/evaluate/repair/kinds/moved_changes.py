"""What stands in the wrong one of two places: a term before or behind a function, two terms of a
statement, the two coordinates of a lane.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from evoengine.evaluate.repair.expression_extents import PRECEDENCE
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.kinds.term_changes import sorts_between, spots_of
from evoengine.evaluate.repair.source_change import SourceChange

_STATEMENTS_AWAY = 3  # a term is moved so far at most
_LONGEST_TERM = 20  # tokens
_MOST_TERMS = 6  # of a statement, of which each two are exchanged
_LANES = ("2", "4", "8", "16", "32")


def moved_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Terms moved to statements nearby, terms exchanged, coordinates counted otherwise."""
    yield from _moved(code)
    yield from _exchanged(code)
    yield from _coordinates(code)


def _moved(code: KernelCode) -> Iterator[SourceChange]:
    """A summand or factor of one statement dropped there and put behind a value of another."""
    spots = [pair for pair in spots_of(code) if not code.in_index(pair[0])]
    spots = [pair for pair in spots if sorts_between(code, *pair) & {"float", "array"}]
    for number, (first, last) in enumerate(code.statements):
        near = code.statements[max(0, number - _STATEMENTS_AWAY) : number + _STATEMENTS_AWAY + 1]
        for sign, (begin, end) in _operands_behind(code, first, last):
            term = code.tokens.source(begin, end)
            dropped = code.replaced(begin - 1, end, "", "")
            for spot in spots:
                is_near = any(pair[0] <= spot[0] <= spot[1] <= pair[1] for pair in near)
                if is_near and not first <= spot[0] <= last and code.can_stand(begin, end, spot[1]):
                    put = code.replaced(*spot, _with(code, spot, sign, term), "")
                    yield together([dropped, put], "term moved")


def _operands_behind(
    code: KernelCode, first: int, last: int
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each + - * of a statement outside of indices with its right operand, a floating value."""
    tokens = code.tokens
    for position in range(first, last):
        sign = tokens.text(position)
        if sign not in ("+", "-", "*") or not code.extents.is_binary(position):
            continue
        begin, end = code.extents.operand_behind(position)
        short = begin <= end < begin + _LONGEST_TERM and not code.in_index(position)
        if short and sorts_between(code, begin, end) & {"float", "array", "pointer"}:
            yield sign, (begin, end)


def _with(code: KernelCode, spot: tuple[int, int], sign: str, term: str) -> str:
    old = code.tokens.source(*spot)
    has_sum = any(
        code.extents.is_binary(place)
        and PRECEDENCE[code.tokens.text(place)] < 10
        and code.tokens.enclosing[place] == code.tokens.enclosing[spot[0]]
        for place in range(spot[0], spot[1] + 1)
    )
    return f"({old}) {sign} {term}" if sign == "*" and has_sum else f"{old} {sign} {term}"


def _exchanged(code: KernelCode) -> Iterator[SourceChange]:
    """Each two summands of a statement that are more than a name, one in place of the other."""
    tokens = code.tokens
    for first, last in code.statements:
        found: dict[tuple[int, int], str] = {}
        for position in range(first, last):
            if tokens.text(position) == "+" and code.extents.is_binary(position):
                left = code.extents.operand_before(position)
                for begin, end in (
                    (last_summand(code, left), left[1]),
                    code.extents.operand_behind(position),
                ):
                    if begin < end:
                        found.setdefault((begin, end), tokens.source(begin, end))
        terms = list(found.items())[:_MOST_TERMS]
        for (one, text), (other, other_text) in combinations(terms, 2):
            if text != other_text and (one[1] < other[0] or other[1] < one[0]):
                begin, end = min(one[0], other[0]), max(one[1], other[1])
                new = tokens.rewritten(begin, end, [(*one, other_text), (*other, text)])
                yield code.replaced(begin, end, new, "terms exchanged")


def last_summand(code: KernelCode, pair: tuple[int, int]) -> int:
    """The first token of the last summand of a sum."""
    tokens, place = code.tokens, pair[1]
    while place > pair[0]:
        if tokens.text(place) in (")", "]") and place in tokens.partners:
            place = tokens.partners[place] - 1
            continue
        if tokens.text(place) in ("+", "-") and code.extents.is_binary(place):
            return place + 1
        place -= 1
    return pair[0]


def _coordinates(code: KernelCode) -> Iterator[SourceChange]:
    """x / 4 and x % 4 side by side, with another number, or one in place of the other."""
    tokens = code.tokens
    split = [
        (position, code.extents.operand_before(position))
        for position in range(len(tokens))
        if tokens.text(position) in ("/", "%")
        and code.extents.is_binary(position)
        and code.function_places[position]
        and tokens.text(position + 1).isdigit()
    ]
    for (one, left), (other, right) in pairwise(split):
        signs = tokens.text(one), tokens.text(other)
        same = tokens.source(*left) == tokens.source(*right) if left[0] <= left[1] else False
        if not same or signs[0] == signs[1] or other - one > 16:
            continue
        numbers = tokens.text(one + 1), tokens.text(other + 1)
        for number in _LANES:
            for first, second in (signs, signs[::-1]):
                if (number, number) != numbers or first != signs[0]:
                    pair = [
                        code.replaced(one, one + 1, f"{first} {number}", ""),
                        code.replaced(other, other + 1, f"{second} {number}", ""),
                    ]
                    yield together(pair, "coordinates of a lane")
