"""Values that were computed before what they are made of has changed: computed anew."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.expression_extents import ASSIGNMENTS
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_LONGEST = 16  # tokens of a value


def anew_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`squares += delta * delta` made `squares += delta * (value - mean)`, where delta was
    value - mean before the mean was changed.
    """
    tokens = code.tokens
    for item in code.names.all:
        start = item.position + 1
        if item.sort not in ("int", "float") or tokens.text(start) != "=":
            continue
        first, last = start + 1, code.extents.last_of(start, 0)
        if not 0 < last - first < _LONGEST:
            continue
        names = {tokens.text(place) for place in range(first, last + 1)}
        changed = False
        for place in range(last + 1, item.last + 1):
            changed |= tokens.text(place) in names and _is_assigned(code, place)
            is_use = tokens.text(place) == item.name and code.names.at(place) == item
            if changed and is_use and not _is_assigned(code, place):
                new = f"({tokens.source(first, last)})"
                yield code.replaced(place, place, new, "value computed anew")


def _is_assigned(code: KernelCode, place: int) -> bool:
    """Whether a variable is given another value there, or a member or an element of it."""
    tokens = code.tokens
    while tokens.text(place + 1) in (".", "["):
        is_member = tokens.text(place + 1) == "."
        place = place + 2 if is_member else tokens.partners.get(place + 1, place + 1)
    return tokens.text(place + 1) in ASSIGNMENTS
