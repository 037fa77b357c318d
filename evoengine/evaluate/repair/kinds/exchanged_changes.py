"""Names that two neighbouring statements have exchanged."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, pairwise

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_LONGEST = 60  # tokens of a statement
_MOST_NAMES = 6  # of one, the first


def exchanged_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`row = top + across; column = left + down;` made `row = top + down; column = left + across;`
    and what two statements set, or are set to, exchanged.
    """
    for one, other in pairwise(code.statements):
        if one[1] + 1 == other[0] and max(one[1] - one[0], other[1] - other[0]) < _LONGEST:
            yield from _names(code, one, other)
            yield from _values(code, one, other)
    for first, last in code.statements:  # `int row = a + c, column = b + d;`
        commas = [
            place
            for place in range(first, last)
            if code.tokens.text(place) == ","
            and code.tokens.enclosing[place] == code.tokens.enclosing[first]
        ]
        bounds = [first - 1, *commas, last]
        parts = [(begin + 1, end - 1) for begin, end in pairwise(bounds)]
        for one, other in combinations(parts[:_MOST_NAMES], 2):
            yield from _names(code, one, other)


def _names(
    code: KernelCode, one: tuple[int, int], other: tuple[int, int]
) -> Iterator[SourceChange]:
    """A name of each, neither of which the other one has, exchanged."""
    own, others = _reads(code, *one), _reads(code, *other)
    for name, (place, sort) in list(own.items())[:_MOST_NAMES]:
        for second, (at, its_sort) in list(others.items())[:_MOST_NAMES]:
            if name not in others and second not in own and sort == its_sort:
                changes = [
                    code.replaced(place, place, second, ""),
                    code.replaced(at, at, name, ""),
                ]
                yield together(changes, "names of two statements exchanged")


def _reads(code: KernelCode, first: int, last: int) -> dict[str, tuple[int, str]]:
    """The variables that are read once between two tokens, with their places and sorts."""
    found: dict[str, list[tuple[int, str]]] = {}
    for begin, end, sort in code.atoms_between(first, last):
        name = code.tokens.text(begin)
        if begin == end != first and sort in ("int", "float") and not name.isupper():
            found.setdefault(name, []).append((begin, sort))
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _values(
    code: KernelCode, one: tuple[int, int], other: tuple[int, int]
) -> Iterator[SourceChange]:
    """What two declarations of one type are set to, exchanged."""
    first, second = _sign(code, *one), _sign(code, *other)
    if first is None or second is None:
        return
    tokens = code.tokens
    if tokens.source(one[0], first - 2) != tokens.source(other[0], second - 2):
        return
    spans = (first + 1, one[1] - 1), (second + 1, other[1] - 1)
    texts = [tokens.source(*span) for span in spans]
    if texts[0] != texts[1] and tokens.text(first - 1) not in re.findall(r"\w+", texts[1]):
        changes = [
            code.replaced(*span, new, "") for span, new in zip(spans, reversed(texts), strict=True)
        ]
        yield together(changes, "first values of two variables exchanged")


def _sign(code: KernelCode, first: int, last: int) -> int | None:
    """The `=` of a declaration of one variable."""
    own = [item for item in code.names.all if first < item.position <= last]
    if len(own) != 1 or code.tokens.text(own[0].position + 1) != "=":
        return None
    sign = own[0].position + 1
    return sign if first <= sign - 2 and sign < last - 1 else None
