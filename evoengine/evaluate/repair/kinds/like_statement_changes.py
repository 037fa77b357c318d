"""What two statements that stand one behind the other have in each other's place: values, indices,
registers of a fragment.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_LONGEST = 60  # tokens of a statement
_MOST_RUNS = 4  # of tokens that differ between two statements
_PARTS = ("/", "%")
_MOST_ELEMENTS = 6  # of a statement, of which each two change places
_MOST_TEXTS = 5  # expressions of a statement, each two of which are exchanged

Range = tuple[int, int]


def like_statement_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Parts of neighbouring statements exchanged, and expressions and elements of one."""
    for one, other in pairwise(code.statements):
        if other[0] == one[1] + 1 and max(one[1] - one[0], other[1] - other[0]) <= _LONGEST:
            yield from _between(code, one, other)
    for first, last in code.statements:
        yield from _expressions(code, first, last)
        yield from _elements(code, first, last)
    for first, last in code.conditions:
        yield from _expressions(code, first, last)


def _between(code: KernelCode, one: Range, other: Range) -> Iterator[SourceChange]:
    """What differs between two statements, exchanged."""
    runs = _runs(code, one, other)
    if runs is not None and 1 < len(runs) <= _MOST_RUNS:
        for pair in runs:
            yield _exchanged(code, *pair, "exchanged with the next statement")
    yield from _arguments(code, one, other)
    values = _value(code, one), _value(code, other)
    if values[0] is not None and values[1] is not None and code.can_stand(*values[1], one[0]):
        yield _exchanged(code, values[0], values[1], "exchanged with the next statement")


def _arguments(code: KernelCode, one: Range, other: Range) -> Iterator[SourceChange]:
    """Each argument of two calls of the same function, where they differ in more than one."""
    tokens = code.tokens
    calls = [item for item in (one, other) if tokens.partners.get(item[0] + 1) == item[1] - 1]
    if len(calls) < 2 or tokens.text(one[0]) != tokens.text(other[0]):
        return
    arguments = [code.extents.arguments(item[0] + 1) for item in calls]
    pairs = [
        pair
        for pair in zip(*arguments, strict=False)
        if tokens.source(*pair[0]) != tokens.source(*pair[1])
    ]
    for left, right in pairs if 1 < len(pairs) <= _MOST_RUNS else ():
        yield _exchanged(code, left, right, "exchanged with the next statement")


def _runs(code: KernelCode, one: Range, other: Range) -> list[tuple[Range, Range]] | None:
    """The stretches in which two statements differ; None where they are not alike."""
    tokens = code.tokens
    if one[1] - one[0] != other[1] - other[0]:
        return None
    found: list[tuple[Range, Range]] = []
    for place in range(one[1] - one[0]):
        here, there = one[0] + place, other[0] + place
        if tokens.kind(here) != tokens.kind(there):
            return None
        if tokens.text(here) == tokens.text(there):
            continue
        if tokens.kind(here) == "sign":
            return None
        if found and found[-1][0][1] == here - 1:
            found[-1] = (found[-1][0][0], here), (found[-1][1][0], there)
        else:
            found.append(((here, here), (there, there)))
    return found


def _value(code: KernelCode, statement: Range) -> Range | None:
    """What a statement assigns that declares nothing; None where it is no single assignment."""
    tokens, (first, last) = code.tokens, statement
    places = [place for place in range(first, last) if tokens.text(place) in ("=", "+=")]
    if len(places) != 1 or code.names.at(first) is None or places[0] + 1 > last - 1:
        return None
    return places[0] + 1, last - 1


def _exchanged(code: KernelCode, one: Range, other: Range, kind: str) -> SourceChange:
    texts = code.tokens.source(*one), code.tokens.source(*other)
    return together([code.replaced(*one, texts[1], ""), code.replaced(*other, texts[0], "")], kind)


def _expressions(code: KernelCode, first: int, last: int) -> Iterator[SourceChange]:
    """Two coordinates, such as i % 2 and i % 4 / 2, exchanged wherever a statement has them."""
    tokens = code.tokens
    found: dict[str, list[Range]] = {}
    for position in range(first, last):
        if tokens.text(position) in _PARTS and code.extents.is_binary(position):
            begin, end = code.extents.operand_before(position)[0], position + 1
            if begin < position and end - begin <= 6 and tokens.kind(end) == "number":
                while tokens.text(end + 1) in _PARTS and tokens.kind(end + 2) == "number":
                    end += 2
                found.setdefault(tokens.source(begin, end), []).append((begin, end))
    whole = {text: sorted(set(ranges)) for text, ranges in list(found.items())[:_MOST_TEXTS]}
    for one, other in combinations(whole, 2):
        if one in other or other in one:
            continue
        pieces = [(begin, end, other) for begin, end in whole[one]]
        pieces += [(begin, end, one) for begin, end in whole[other]]
        new = tokens.rewritten(first, last, pieces)
        yield code.replaced(first, last, new, "coordinates exchanged")


def _elements(code: KernelCode, first: int, last: int) -> Iterator[SourceChange]:
    """Two indices with which a statement reads the same array, exchanged."""
    tokens = code.tokens
    inside = [item for item in code.indices if first <= item[0] <= last]
    for (one, *left), (other, *right) in combinations(inside[:_MOST_ELEMENTS], 2):
        near, far = (left[0], left[1]), (right[0], right[1])
        texts = tokens.source(*near), tokens.source(*far)
        if tokens.text(one) == tokens.text(other) and texts[0] != texts[1] and near[1] < far[0]:
            pieces = [(near[0], near[1], texts[1]), (far[0], far[1], texts[0])]
            new = tokens.rewritten(first, last, pieces)
            yield code.replaced(first, last, new, "indices exchanged")
