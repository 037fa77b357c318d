"""Conditions that lack a part which another one of the kernel has, beside a part that both have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.visible_names import has_meaning
from evoengine.evaluate.repair.source_change import SourceChange

_COMPARED = re.compile(r"([^<>=!&|?]+) (==|!=|<|<=|>|>=) ([^<>=!&|?]+)")
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_NAMED = re.compile(r"(!?)([\w.]+)")


class _Part(NamedTuple):
    """A comparison or a flag that a condition asks for, or that ends a round."""

    first: int
    last: int
    holds: str  # what is true where the work is done


def shared_condition_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`if (col >= cols) continue;` made `if (team != 0 || col >= cols) continue;` where another
    condition is `team == 0 && col < cols`, and `if (col < cols)` made `team == 0 && col < cols`.
    """
    known = [(pair, _parts(code, *pair)) for pair in code.conditions]
    for (first, last), own in known:
        asked = {part.holds for part in own}
        text = code.tokens.source(first, last)
        missing: dict[str, _Part] = {}
        for _, other in known:
            if not asked.isdisjoint(part.holds for part in other):
                missing |= {part.holds: part for part in other if part.holds not in asked}
        for holds, part in missing.items():
            if has_meaning(code, (part.first, part.last), first):
                is_left = code.is_left_where(last)
                new = f"{_opposite(holds)} || {text}" if is_left else f"{holds} && {text}"
                yield code.replaced(first, last, new, "part of a like condition missing")


def _parts(code: KernelCode, first: int, last: int) -> list[_Part]:
    """The parts of a condition all of which hold where the work is done; none where it is made of
    others.
    """
    left = code.is_left_where(last)
    operator, other = ("||", "&&") if left else ("&&", "||")
    tokens, found, begin, place = code.tokens, list[_Part](), first, first
    while place <= last + 1:
        text = tokens.text(place)
        if text == other:
            return []
        if text == operator or place == last + 1:
            part = tokens.source(begin, place - 1)
            holds = _opposite(part) if left else part
            if not holds or not _opposite(part):
                return []
            found.append(_Part(begin, place - 1, holds))
            begin = place + 1
        place = tokens.partners.get(place, place) + 1 if text in "([" else place + 1
    return found


def _opposite(part: str) -> str:
    """What holds where a comparison or a flag does not; nothing of any other condition."""
    if found := _COMPARED.fullmatch(part):
        return f"{found[1]} {_OPPOSITE[found[2]]} {found[3]}"
    if found := _NAMED.fullmatch(part):
        return f"{'' if found[1] else '!'}{found[2]}"
    return ""
