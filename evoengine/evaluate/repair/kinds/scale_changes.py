"""Factors, sizes and bounds that a place lacks and the kernel's other places suggest: those of a
running value, of calls of the same function, of the rows of a block.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.term_changes import sorts_between
from evoengine.evaluate.repair.source_change import SourceChange

_COMPARED = ("<", "<=", ">", ">=")
_LANE = re.compile(r"lane\w*|tid\w*|threadIdx\.x", re.IGNORECASE)
_NEAREST = 4  # variables, the last declared first
_SHORTEST = 3  # tokens of an expression with which another variable begins

Range = tuple[int, int]


def scale_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Every place that may lack one."""
    yield from _running(code)
    yield from _like_calls(code)
    yield from _blocks(code)
    yield from _compared(code)
    yield from _arguments_by_one(code)
    yield from _beginnings(code)
    yield from _of_lanes(code)


def _running(code: KernelCode) -> Iterator[SourceChange]:
    """`sum = sum + x` made `sum = sum * f + x`, for a factor that was computed just before."""
    tokens = code.tokens
    for first, last in code.statements:
        for place in range(first, last):
            if tokens.text(place) != "=" or code.names.at(first) is None:
                continue
            target = tokens.source(first, place - 1)
            end = place + (place - first)
            if end > last or tokens.source(place + 1, end) != target:
                continue
            if tokens.text(end + 1) not in ("+", "-"):
                continue
            for item in code.visible(first, "float")[:_NEAREST]:
                new = f"{target} * {item.name}"
                yield code.replaced(place + 1, end, new, "factor missing, of a running value")


def _like_calls(code: KernelCode) -> Iterator[SourceChange]:
    """f(x) made f((x) * s), where the same function is called with a factor s elsewhere."""
    tokens = code.tokens
    calls: dict[str, list[Range]] = {}
    factors: dict[str, dict[str, int]] = {}
    for opening in range(1, len(tokens)):
        if tokens.text(opening) != "(" or tokens.kind(opening - 1) != "name":
            continue
        inside = code.extents.arguments(opening) if code.function_places[opening] else []
        if len(inside) != 1:
            continue
        name = tokens.text(opening - 1)
        calls.setdefault(name, []).append(inside[0])
        for place in range(inside[0][0], inside[0][1]):
            own = code.names.at(place + 1) if tokens.kind(place + 1) == "name" else None
            if tokens.text(place) == "*" and own is not None and own.sort == "float":
                factors.setdefault(name, {})[own.name] = place + 1
    for name, ranges in calls.items():
        for first, last in ranges:
            text = tokens.source(first, last)
            for factor, place in factors.get(name, {}).items():
                if factor not in text and code.can_stand(place, place, first):
                    new = f"({text}) * {factor}"
                    yield code.replaced(first, last, new, "factor missing, of a like call")


def _blocks(code: KernelCode) -> Iterator[SourceChange]:
    """blockIdx.x made blockIdx.x * ROWS: a block begins behind what the one before takes."""
    tokens = code.tokens
    for place in range(len(tokens) - 2):
        if tokens.text(place) != "blockIdx" or not code.function_places[place]:
            continue
        end = place + 2
        while tokens.text(end + 1) == ")" and tokens.partners.get(end + 1, place) < place:
            end += 1
        if tokens.text(end + 1) in ("*", "/", "%", "==", "<", ">"):
            continue
        for item in code.visible(place, "int"):
            if item.is_parameter or item.name.isupper():
                yield code.inserted(end, f" * {item.name}", "factor missing, of a block")


def _compared(code: KernelCode) -> Iterator[SourceChange]:
    """a < b made a + TILE < b, for the size of a tile."""
    tokens = code.tokens
    for position in range(len(tokens)):
        if tokens.text(position) not in _COMPARED or not code.extents.is_binary(position):
            continue
        first, last = code.extents.operand_before(position)
        if first > last or sorts_between(code, first, last) != {"int"}:
            continue
        text = tokens.source(first, last)
        for item in code.visible(first, "int"):
            if item.name.isupper() and len(item.name) > 1 and item.name not in text:
                kind = "summand missing, compared"
                yield code.inserted(last, f" + {item.name}", kind)


def _arguments_by_one(code: KernelCode) -> Iterator[SourceChange]:
    """An argument that is a sum of whole numbers, one more or less."""
    tokens = code.tokens
    for opening in range(1, len(tokens)):
        called = tokens.text(opening) == "(" and tokens.kind(opening - 1) == "name"
        if not called or not code.function_places[opening]:
            continue
        if tokens.text(opening - 1) in ("for", "if", "while", "return", "sizeof"):
            continue
        for first, last in code.extents.arguments(opening):
            is_sum = any(tokens.text(place) in ("+", "-") for place in range(first, last))
            short = last - first < 8
            if is_sum and short and sorts_between(code, first, last) == {"int"}:
                for sign in ("-", "+"):
                    yield code.inserted(last, f" {sign} 1", "one off, in an argument")


def _beginnings(code: KernelCode) -> Iterator[SourceChange]:
    """An expression with which the value of a variable begins, made that variable: x * N made
    first, where `first = x * N + y`.
    """
    tokens = code.tokens
    made: list[tuple[str, str, int]] = []
    for item in code.names.all:
        if item.sort != "int" or tokens.text(item.position + 1) != "=":
            continue
        begin, end = item.position + 2, code.extents.last_of(item.position + 1, 0)
        for place in range(begin + _SHORTEST, end):
            if tokens.text(place) == "+" and code.extents.is_binary(place):
                made.append((item.name, "".join(tokens.source(begin, place - 1).split()), place))
    if not made:
        return
    for position in range(len(tokens)):
        if tokens.text(position) not in ("+", "<", "*") or not code.extents.is_binary(position):
            continue
        first, last = code.extents.operand_before(position)
        text = "".join(tokens.source(first, last).split()) if first <= last else ""
        for name, beginning, place in made:
            visible = any(item.name == name for item in code.visible(first, "int"))
            if text == beginning and place < first and visible:
                yield code.replaced(first, last, name, "name for its beginning")


def _of_lanes(code: KernelCode) -> Iterator[SourceChange]:
    """x[lane] made lane < WARPS ? x[lane] : 0, where fewer have a result than there are lanes."""
    tokens = code.tokens
    sizes = ["blockDim.x / 32"] if "blockDim" in tokens.code else []
    for name, first, last in code.indices:
        text = tokens.source(first, last)
        end = last + 1
        is_value = (name, end) in code.values
        if not is_value or not _LANE.fullmatch(text):
            continue
        known = [item.name for item in code.visible(name, "int")]
        own = [item for item in known if item.isupper() and "WARPS" in item]
        own += [f"{item} / 32" for item in known if "THREADS" in item or item == "BLOCK"]
        for size in (*own, *sizes):
            new = f"({text} < {size} ? {tokens.source(name, end)} : 0.0f)"
            yield code.replaced(name, end, new, "condition of a lane missing")
