"""Values that a warp has found, and who has them: sums that lane 0 alone has, the first or the last
lane of a vote, results that are summed and not stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.ahead_changes import functions_with
from evoengine.evaluate.repair.source_change import SourceChange

_DOWN = re.compile(r"__shfl_down_sync")
_BROADCAST = "__shfl_sync(0xffffffffu, {}, 0)"


def warp_value_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Broadcasts, votes and stores of what was computed."""
    yield from _broadcasts(code)
    yield from _votes(code)
    yield from _stored(code)


def _broadcasts(code: KernelCode) -> Iterator[SourceChange]:
    """`sum = lane_sum(x)`, whose lane 0 alone has the sum, made the same in all lanes."""
    tokens, kind = code.tokens, "sum of the first lane alone"
    if not _DOWN.search(tokens.code):
        return
    reducing = functions_with(code, _DOWN)
    for place in range(len(tokens)):
        is_call = tokens.text(place) in reducing and tokens.text(place + 1) == "("
        if is_call and code.function_places[place] and place + 1 in tokens.partners:
            end = tokens.partners[place + 1]
            text = tokens.source(place, end)
            yield code.replaced(place, end, _BROADCAST.format(text), kind)
    for first, last in code.statements:
        text = tokens.source(first, last)
        target = tokens.text(first)
        if _DOWN.search(text) and tokens.kind(first) == "name" and "=" in tokens.text(first + 1):
            loop = _loop_around(code, first)
            if loop is not None:
                new = f" {target} = {_BROADCAST.format(target)};"
                yield code.inserted(max(loop, last), new, kind)


def _loop_around(code: KernelCode, first: int) -> int | None:
    """The last token of the loop whose body the statement is or that has it in a block."""
    tokens = code.tokens
    opening = tokens.enclosing[first]
    if tokens.text(first - 1) == ")":
        head, end = tokens.partners.get(first - 1, -1), code.extents.statement(first)[1]
    elif opening > 0 and tokens.text(opening) == "{" and tokens.text(opening - 1) == ")":
        head, end = tokens.partners.get(opening - 1, -1), tokens.partners.get(opening, -1)
    else:
        return None
    return end if head > 0 and tokens.text(head - 1) in ("for", "while") else None


def _votes(code: KernelCode) -> Iterator[SourceChange]:
    """`31 - __clz(mask)` and `__ffs(mask) - 1`, one for the other."""
    tokens, kind = code.tokens, "first lane for the last"
    for place in range(2, len(tokens) - 1):
        if tokens.text(place + 1) != "(" or place + 1 not in tokens.partners:
            continue
        end = tokens.partners[place + 1]
        argument = tokens.source(place + 2, end - 1)
        if tokens.text(place) == "__clz" and tokens.source(place - 2, place - 1) == "31 -":
            yield code.replaced(place - 2, end, f"__ffs({argument}) - 1", kind)
        elif tokens.text(place) == "__ffs" and tokens.source(end + 1, end + 2) == "- 1":
            yield code.replaced(place, end + 2, f"31 - __clz({argument})", kind)


def _stored(code: KernelCode) -> Iterator[SourceChange]:
    """`sum += expf(row[i] - top)` made `sum += row[i] = expf(row[i] - top)`."""
    tokens = code.tokens
    for first, last in code.statements:
        sign = next((at for at in range(first, last) if tokens.text(at) == "+="), None)
        if sign is None or tokens.text(sign + 2) != "(":
            continue
        value = tokens.source(sign + 1, last - 1)
        for name, _, end in code.indices:
            if sign < name and end < last and tokens.text(end + 2) != "[":
                element = tokens.source(name, end + 1)
                new = f"{element} = {value}"
                yield code.replaced(sign + 1, last - 1, new, "summed and not stored")
