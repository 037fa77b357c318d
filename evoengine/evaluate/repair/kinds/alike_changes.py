"""Mistakes that statements which follow one another have alike: one for each member of a vector."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_MEMBERS = "xyzw"
_LONGEST = 60  # tokens of a statement
_MEMBER = re.compile(r"\.([xyzw])\b")

Range = tuple[int, int]


@dataclass(frozen=True)
class _Like:
    """A statement that is like another one: so many tokens behind it, `new` in place of `old`."""

    moved: int
    old: str  # members
    new: str


def alike_changes(code: KernelCode, changes: Iterable[SourceChange]) -> Iterator[SourceChange]:
    """Each change of one statement made in all that differ from it in the member alone: with
    `top.x = fminf(top.x, x)` also `top.y = fminf(top.y, y)`.
    """
    groups = [(code.tokens.span(*first), likes) for first, likes in _groups(code)]
    for change in changes:
        start, end = change.start - code.offset, change.end - code.offset
        for (begin, last), likes in groups:
            if not change.others and begin <= start < end <= last:
                yield from _in_all(code, change, likes)


def _groups(code: KernelCode) -> Iterator[tuple[Range, list[_Like]]]:
    """Each statement that others follow which have another member, and those."""
    statements = list(code.statements)
    while statements:
        first, last = statements.pop(0), 0
        likes = list[_Like]()
        while statements and statements[0][0] == (last or first[1]) + 1:
            like = _like(code, first, statements[0])
            if like is None:
                break
            likes.append(like)
            last = statements.pop(0)[1]
        if likes:
            yield first, likes


def _like(code: KernelCode, one: Range, other: Range) -> _Like | None:
    """`other` as a statement like `one` but for the member; None where it differs in more."""
    if other[1] - other[0] != one[1] - one[0] or one[1] - one[0] > _LONGEST:
        return None
    moved, text = other[0] - one[0], code.tokens.text
    pairs = {(text(place), text(place + moved)) for place in range(one[0], one[1] + 1)}
    found = [(old, new) for old, new in pairs if old != new]
    if len(found) != 1 or not set(found[0]) <= set(_MEMBERS):
        return None
    return _Like(moved, *found[0])


def _in_all(
    code: KernelCode, change: SourceChange, likes: Sequence[_Like]
) -> Iterator[SourceChange]:
    start, end = change.start - code.offset, change.end - code.offset
    places = code.token_places(start, end)
    if places is None or code.tokens.span(*places) != (start, end):
        return
    first, last = places
    others = [
        code.replaced(
            first + like.moved,
            last + like.moved,
            _with_member(change.new, like.old, like.new),
            change.kind,
        )
        for like in likes
    ]
    yield together([change, *others], change.kind)


def _with_member(text: str, old: str, new: str) -> str:
    """`text` with the member `new` wherever it has `old`."""
    if text == old:
        return new
    return _MEMBER.sub(lambda found: f".{new if found[1] == old else found[1]}", text)
