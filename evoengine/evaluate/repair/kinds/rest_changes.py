"""Parts that reach too far or not far enough: the rest of a loop, a part's own end, its step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_NEAREST = 6  # variables, the last declared first
_BEGIN = re.compile(r"(\w+) = (.+) \* (\w+)", re.DOTALL)

Range = tuple[int, int]


@dataclass(frozen=True)
class _Loop:
    """for (variable = ...; variable < bound; variable += step), and where its body is."""

    variable: str
    bound: str
    step: str
    step_place: Range  # `+= step`, or the ++ with its variable
    body: Range


def rest_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Sizes limited to what is left, ends of a part of its own, steps by the number of those that
    share a loop.
    """
    loops = list(_loops(code))
    yield from _rests(code, loops)
    yield from _own_ends(code)
    yield from _steps(code, loops)
    yield from _bounds(code)


def _loops(code: KernelCode) -> Iterator[_Loop]:
    tokens = code.tokens
    for _, begins, ends, closing in code.counted_loops():
        if tokens.text(begins + 2) not in ("<", "<="):
            continue
        variable, bound = tokens.text(begins + 1), tokens.source(begins + 3, ends - 1)
        head = tokens.source(ends + 1, closing - 1)
        if head in (f"++{variable}", f"{variable}++"):
            step = "1"
        elif tokens.text(ends + 1) == variable and tokens.text(ends + 2) == "+=":
            step = tokens.source(ends + 3, closing - 1)
        else:
            continue
        yield _Loop(variable, bound, step, (ends + 1, closing - 1), code.body(closing))


def _rests(code: KernelCode, loops: list[_Loop]) -> Iterator[SourceChange]:
    """`32` in a loop in steps of 32 made min(32, bound - variable)."""
    for loop in loops:
        if loop.step == "1" or not re.fullmatch(r"\w+", loop.bound):
            continue
        for place in range(loop.body[0] + 1, loop.body[1]):
            if code.tokens.text(place) == loop.step and not code.in_index(place):
                new = f"min({loop.step}, {loop.bound} - {loop.variable})"
                yield code.replaced(place, place, new, "rest of a loop missing")


def _own_ends(code: KernelCode) -> Iterator[SourceChange]:
    """`end = K` beside `begin = part * size` made min(K, begin + size)."""
    tokens = code.tokens
    begins = [
        found
        for first, last in code.values
        if (found := _BEGIN.fullmatch(f"{tokens.text(first - 2)} = {tokens.source(first, last)}"))
        and tokens.text(first - 1) == "="
    ]
    for first, last in code.values:
        if first != last or tokens.text(first - 1) != "=" or tokens.kind(first) != "name":
            continue
        own = code.names.at(first)
        if own is None or own.sort != "int":
            continue
        names = {item.name for item in code.visible(first, "int")}
        for found in begins:
            name, _, size = found.groups()
            if name in names and name != tokens.text(first - 2) and name != own.name:
                for new in (f"min({own.name}, {name} + {size})", f"{name} + {size}"):
                    yield code.replaced(first, last, new, "end of a part missing")


def _steps(code: KernelCode, loops: list[_Loop]) -> Iterator[SourceChange]:
    """`++i` made `i += TEAMS`."""
    for loop in loops:
        if loop.step != "1":
            continue
        first, last = loop.step_place
        sizes = [item.name for item in code.visible(first, "int") if item.name.isupper()]
        grids = [it for it in ("blockDim.x", "blockDim.y", "gridDim.x") if it in code.tokens.code]
        for size in (*sizes[:_NEAREST], *grids):
            if size != loop.bound:
                new = f"{loop.variable} += {size}"
                yield code.replaced(first, last, new, "step of a loop that others share")


def _bounds(code: KernelCode) -> Iterator[SourceChange]:
    """`k < 32` made `k < count`, for a count that was computed before."""
    tokens = code.tokens
    for position in range(1, len(tokens)):
        if tokens.kind(position) != "number" or tokens.text(position - 1) not in ("<", "<="):
            continue
        if code.loop_of(position) is None or tokens.text(position) == "0":
            continue
        items = [
            item
            for item in code.visible(position, "int")
            if not item.is_parameter
            and not item.name.isupper()
            and item.name != code.loop_variable(position)
        ]
        for item in items[:_NEAREST]:
            yield code.replaced(position, position, item.name, "count for a number of a loop")
