"""What several blocks share: sums that are added up by each of them, counters that must begin anew,
copies that must have come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_PENDING = re.compile(r"(wait_group(?:\.\w+)*\s+)(\d+)")


def counter_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Atomic additions that are missing, counters set back, fewer copies left pending."""
    yield from _atomic(code)
    yield from _set_back(code)
    yield from _wrapping(code)
    yield from _pending(code)


def _atomic(code: KernelCode) -> Iterator[SourceChange]:
    """a[i] += x made atomicAdd(&a[i], x)."""
    tokens = code.tokens
    arrays = {name for name, _, _ in code.indices}
    for first, last in code.statements:
        place = next((at for at in range(first, last) if tokens.text(at) == "+="), None)
        if place is None or first not in arrays or tokens.text(place - 1) != "]":
            continue
        new = (
            f"atomicAdd(&{tokens.source(first, place - 1)}, {tokens.source(place + 1, last - 1)});"
        )
        yield code.replaced(first, last, new, "atomic addition missing")


def _set_back(code: KernelCode) -> Iterator[SourceChange]:
    """What is counted by atomicAdd set to zero at the end of a block of statements behind it."""
    tokens = code.tokens
    thread = "threadIdx.x == 0 && threadIdx.y == 0" if "threadIdx.y" in tokens.code else ""
    for opening, (first, last) in _counters(code):
        text = tokens.source(first, last)
        target = text.removeprefix("&") if text.startswith("&") else f"*({text})"
        for place in range(opening, len(tokens) - 1):
            ends = tokens.text(place + 1) == "}" and tokens.text(place) in (";", "}")
            if ends and code.can_stand(first, last, place):
                new = f" if ({thread or 'threadIdx.x == 0'}) {target} = 0;"
                yield code.inserted(place, new, "counter not set back")


def _counters(code: KernelCode) -> Iterator[tuple[int, tuple[int, int]]]:
    """Each atomicAdd with the address that is its first argument."""
    for place in range(len(code.tokens)):
        if code.tokens.text(place) == "atomicAdd" and code.function_places[place]:
            arguments = code.extents.arguments(place + 1)
            if len(arguments) == 2:
                yield place + 1, arguments[0]


def _wrapping(code: KernelCode) -> Iterator[SourceChange]:
    """atomicAdd(p, 1) made atomicInc(p, n - 1), which begins anew, where something is n - 1."""
    tokens = code.tokens
    lasts = {
        tokens.source(*code.extents.operand_behind(place))
        for place in range(len(tokens))
        if tokens.text(place) == "==" and code.extents.is_binary(place)
    }
    for opening, (first, last) in _counters(code):
        for text in sorted(lasts):
            if text.replace(" ", "").endswith("-1"):
                new = f"atomicInc({tokens.source(first, last)}, {text})"
                end = tokens.partners[opening]
                yield code.replaced(opening - 1, end, new, "counter not set back")


def _pending(code: KernelCode) -> Iterator[SourceChange]:
    """cp.async.wait_group with fewer groups left."""
    tokens = code.tokens
    for first, last in code.statements:
        text = tokens.source(first, last)
        found = _PENDING.search(text)
        if found is None or "asm" not in text:
            continue
        for fewer in range(int(found[2])):
            new = f"{text[: found.start(2)]}{fewer}{text[found.end(2) :]}"
            by_one = fewer == int(found[2]) - 1 and "cp.async" in text
            kind = "groups of copies by one" if by_one else "too many copies pending"
            yield code.replaced(first, last, new, kind)
