"""Sums of an index as the kernel has them elsewhere: the same variables in another layout.

Where a kernel stores at `c * 16 + lane * 2` and reads at `lane * 4 + c`, one of them is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.expression_extents import ASSIGNMENTS
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.visible_names import has_meaning
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_SUMMANDS = 3  # side by side
_LONGEST = 24  # tokens
_MOST_OF_TWO = 8  # sums
_MOST = 160  # changes of a kernel, the nearest first
# what makes of an expression something else than a sum
_OTHERS = {"-", "?", ":", "<", ">", "<=", ">=", "==", "!=", "&&", "||", "&", "|", "^", "<<", ">>"}
_OTHERS |= {";", *ASSIGNMENTS, "++", "--"}

Range = tuple[int, int]


def index_sum_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Summands that stand side by side, as others of the same variables do."""
    runs = [(pair, _variables(code, pair)) for pair in _runs(code)]
    by_variables: dict[frozenset[str], list[Range]] = {}
    for pair, names in runs:
        if len(names) > 1:
            by_variables.setdefault(names, []).append(pair)
    found: dict[tuple[Range, str], tuple[int, SourceChange]] = {}
    for pairs in by_variables.values():
        for one in pairs:
            for other in pairs:
                new = code.tokens.source(*other)
                if _squeezed(code, one) == _squeezed(code, other) or (one, new) in found:
                    continue
                if has_meaning(code, other, one[0]):
                    change = code.replaced(*one, new, "sum of an index as elsewhere")
                    found[one, new] = abs(other[0] - one[0]), change
    yield from _names(code, [pair for pair, names in runs if len(names) == 2])
    for _, change in sorted(found.values(), key=lambda item: item[0])[:_MOST]:
        yield change


def _names(code: KernelCode, sums: list[Range]) -> Iterator[SourceChange]:
    """A summand that is one variable made a sum of two that the kernel has elsewhere: the row of a
    fragment that is counted otherwise.
    """
    texts: dict[str, Range] = {}
    for pair in sums:
        if pair[1] - pair[0] == 2 and code.tokens.text(pair[0] + 1) == "+":
            texts.setdefault(code.tokens.source(*pair), pair)
    for first, last, sort in code.atoms():
        name = code.tokens.text(first)
        around = code.tokens.text(first - 1), code.tokens.text(last + 1)
        is_summand = sort == "int" and first == last and "+" in around and "*" not in around
        own = code.names.at(first) if is_summand else None
        if own is None or own.is_parameter or name.isupper() or not code.function_places[first]:
            continue
        for text, pair in list(texts.items())[:_MOST_OF_TWO]:
            if name not in text.split() and has_meaning(code, pair, first):
                yield code.replaced(first, last, text, "sum of two for a name")


def _runs(code: KernelCode) -> Iterator[Range]:
    """Each summand, and each two or three side by side, of the sums in brackets and of values."""
    tokens = code.tokens
    brackets = [
        (opening, opening + 1, closing)
        for opening, closing in tokens.partners.items()
        if opening < closing
        and tokens.text(opening) in ("(", "[")
        and code.function_places[opening]
    ]
    values = [
        (tokens.enclosing[first], first, last + 1)
        for first, last in code.values
        if tokens.text(first - 1) == "="
    ]
    for around, begin, end in (*brackets, *values):
        for summands in _sums(code, around, begin, end):
            for first in range(len(summands)):
                for last in range(first, min(first + _MOST_SUMMANDS, len(summands))):
                    pair = summands[first][0], summands[last][1]
                    if pair[1] - pair[0] < _LONGEST:
                        yield pair


def _sums(code: KernelCode, opening: int, begin: int, end: int) -> Iterator[list[Range]]:
    """The summands of each sum from `begin` to before `end` that fills an argument, or all of it;
    `opening` is the bracket around them.
    """
    tokens = code.tokens
    summands: list[Range] = []
    is_sum = True
    for place in range(begin, end + 1):
        at_end = place == end or (tokens.text(place) == "," and _is_inside(code, place, opening))
        if at_end or (tokens.text(place) == "+" and _is_inside(code, place, opening)):
            is_sum &= place > begin
            summands.append((begin, place - 1))
            begin = place + 1
        elif _is_inside(code, place, opening) and tokens.text(place) in _OTHERS:
            is_sum = False
        if at_end:
            if is_sum and len(summands) > 1:
                yield summands
            summands, is_sum = [], True


def _is_inside(code: KernelCode, place: int, opening: int) -> bool:
    return code.tokens.enclosing[place] == opening


def _variables(code: KernelCode, pair: Range) -> frozenset[str]:
    """The whole numbers between two tokens that are no parameters, constants or macros."""
    found = (code.names.at(place) for place in range(pair[0], pair[1] + 1))
    return frozenset(
        item.name
        for item in found
        if item is not None
        and item.sort == "int"
        and not item.is_parameter
        and not item.name.isupper()
    )


def _squeezed(code: KernelCode, pair: Range) -> str:
    return "".join(code.tokens.text(place) for place in range(pair[0], pair[1] + 1))
