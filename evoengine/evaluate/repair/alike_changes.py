"""Mistakes that statements which follow one another have alike: one for each member of a vector."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from evoengine.evaluate.repair.coupled_changes import together
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_MEMBERS = "xyzw"
_LONGEST = 60  # tokens of a statement
_MEMBER = re.compile(r"\.([xyzw])\b")

Range = tuple[int, int]


def alike_changes(code: KernelCode, changes: Iterable[SourceChange]) -> Iterator[SourceChange]:
    """Each change of one statement made in all that differ from it in the member alone: with
    `top.x = fminf(top.x, x)` also `top.y = fminf(top.y, y)`.
    """
    groups = {statement: group for group in _groups(code) for statement in group[:1]}
    if not groups:
        return
    spans = {
        statement: tuple(place + code.offset for place in code.tokens.span(*statement))
        for statement in groups
    }
    for change in changes:
        if change.others:
            continue
        for statement, (start, end) in spans.items():
            if start <= change.start and change.end <= end and change.start < change.end:
                yield from _in_all(code, change, groups[statement])


def _groups(code: KernelCode) -> Iterator[list[Range]]:
    """Statements one after the other, each of which has another member than the one before."""
    group: list[Range] = []
    for one, other in pairwise([*code.statements, (-1, -1)]):
        follows = other[0] == one[1] + 1
        if follows and _next_member(code, one, other) is not None:
            group = [*(group or [one]), other]
        elif group:
            yield group
            group = []


def _next_member(code: KernelCode, one: Range, other: Range) -> tuple[str, str] | None:
    """The member of each of two statements that are alike but for it."""
    if other[1] - other[0] != one[1] - one[0] or one[1] - one[0] > _LONGEST:
        return None
    found = set()
    for near, far in zip(range(one[0], one[1] + 1), range(other[0], other[1] + 1), strict=True):
        pair = code.tokens.text(near), code.tokens.text(far)
        if pair[0] != pair[1]:
            found.add(pair)
    members = [pair for pair in found if pair[0] in _MEMBERS and pair[1] in _MEMBERS]
    return members[0] if len(found) == 1 and members else None


def _in_all(
    code: KernelCode, change: SourceChange, group: Sequence[Range]
) -> Iterator[SourceChange]:
    places = code.token_places(change.start - code.offset, change.end - code.offset)
    if places is None:
        return
    first, last = places
    start, end = code.tokens.span(first, last)
    if (start + code.offset, end + code.offset) != (change.start, change.end):
        return
    changes = [change]
    for statement in group[1:]:
        members = _next_member(code, group[0], statement)
        if members is None:
            return
        moved = statement[0] - group[0][0]
        new = _with_member(change.new, *members)
        changes.append(code.replaced(first + moved, last + moved, new, change.kind))
    yield together(changes, change.kind)


def _with_member(text: str, old: str, new: str) -> str:
    """`text` with the member `new` wherever it has `old`."""
    if text == old:
        return new
    return _MEMBER.sub(lambda found: f".{new if found[1] == old else found[1]}", text)
