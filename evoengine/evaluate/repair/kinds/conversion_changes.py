"""Conversions between numbers and bits: rounding that is left out, bytes that are not cut."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.declared_names import NARROW
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_WHOLE_TYPES = ("int", "int32_t", "short", "char", "int8_t", "int16_t")
_TO_NEAREST = "__float2int_rn"
_BYTE = 8  # bits
_FLOATED = frozenset(("sqrtf", "rsqrtf", "expf", "exp2f", "__float2half", "__float2half_rn"))

_IN_HALF = re.compile(
    r"__half2float\((__hmul|__hadd|__hsub|__hfma)\(|__half22float2\((__hmul2|__hadd2|__hsub2)\("
)
_SIGNS = {"__hmul": "*", "__hadd": "+", "__hsub": "-"}


def conversion_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Casts that cut a fraction off, which round to the nearest then; values that are shifted into
    a word, cut to their byte then; whole numbers that are divided, as floats then; sums in half
    precision, in single then.
    """
    tokens = code.tokens
    yield from _in_half(code)
    yield from _narrow(code)
    for position in range(len(tokens)):
        if not code.function_places[position]:
            continue
        if tokens.text(position) == "/" and code.extents.is_binary(position):
            yield from _divided_as_floats(code, position)
        elif tokens.text(position) in _WHOLE_TYPES:
            yield from _rounded(code, position)
        elif tokens.text(position) == "<<":
            yield from _cut_to_a_byte(code, position)


def _divided_as_floats(code: KernelCode, place: int) -> Iterator[SourceChange]:
    """`1 / n` of whole numbers as `1.0f / n`, where a float takes it."""
    tokens = code.tokens
    first, last = code.extents.operand_before(place)
    _, end = code.extents.operand_behind(place)
    if not _is_whole(code, first, last) or not _is_whole(code, place + 1, end):
        return
    if _is_float(code, first):
        text = tokens.source(first, last)
        dividend = f"{text}.0f" if text.isdigit() else f"float({text})"
        new = f"{dividend} {tokens.source(place, end)}"
        yield code.replaced(first, end, new, "whole numbers divided")


def _is_whole(code: KernelCode, first: int, last: int) -> bool:
    """Whether all of an expression are whole numbers."""
    tokens = code.tokens
    for place in range(first, last + 1):
        text, kind = tokens.text(place), tokens.kind(place)
        own = code.names.at(place) if kind == "name" else None
        if kind == "number" and not text.rstrip("uUlL").isdigit():
            return False
        if own is not None and own.sort != "int":
            return False
        is_float = kind == "name" and ("float" in text or text in ("double", "half", "__half"))
        if is_float or text in ("[", "->"):
            return False
    return first <= last


def _is_float(code: KernelCode, place: int) -> bool:
    """Whether the statement of `place` is about a floating value: it declares or changes one."""
    first, last = code.extents.statement(place)
    for at in range(first, min(last + 1, place)):
        if code.tokens.text(at) in ("float", "double") or code.tokens.text(at) in _FLOATED:
            return True
        own = code.names.at(at) if code.tokens.kind(at) == "name" else None
        if own is not None and own.sort == "float":
            return True
    return False


def _rounded(code: KernelCode, place: int) -> Iterator[SourceChange]:
    """`int(x)`, `(int)x` and `static_cast<int>(x)` as __float2int_rn(x)."""
    tokens = code.tokens
    first, last = place, place
    if tokens.text(place - 1) == "<" and tokens.text(place + 1) == ">":
        if tokens.text(place - 2) != "static_cast":
            return
        first, last = place - 2, place + 1
    elif tokens.text(place - 1) == "(" and tokens.text(place + 1) == ")":
        if not code.extents.is_cast(place + 1):
            return
        first, last = place - 1, place + 1
        if tokens.text(last + 1) != "(":
            if tokens.kind(last + 1) == "name":
                end = code.extents.postfix(last + 1)
                text = tokens.source(last + 1, end)
                yield code.replaced(first, end, f"{_TO_NEAREST}({text})", "rounding missing")
            return
    if tokens.text(last + 1) == "(" and last + 1 in tokens.partners:
        yield code.replaced(first, last, _TO_NEAREST, "rounding missing")


def _cut_to_a_byte(code: KernelCode, place: int) -> Iterator[SourceChange]:
    """`(x & 0xffu) << 8` for `x << 8`."""
    tokens = code.tokens
    first, last = code.extents.operand_before(place)
    begin, end = code.extents.operand_behind(place)
    distance = tokens.source(begin, end)
    numbers = [tokens.text(at) for at in range(begin, end + 1) if tokens.kind(at) == "number"]
    values = [int(text) for text in (it.rstrip("uUlL") for it in numbers) if text.isdigit()]
    by_bytes = any(value and value % _BYTE == 0 for value in values)
    if first <= last and by_bytes and tokens.kind(last) != "number":
        text = tokens.source(first, last)
        if "&" not in text:
            new = f"(({text}) & 0xffu) << {distance}"
            yield code.replaced(first, end, new, "byte not cut")


def _narrow(code: KernelCode) -> Iterator[SourceChange]:
    """Local sums in half precision, made single."""
    tokens = code.tokens
    for item in code.names.all:
        if item.position < 0 or item.is_parameter or item.sort not in ("float", "array"):
            continue
        if "__shared__" in (tokens.text(item.declaration - 1), tokens.text(item.declaration)):
            continue
        for place in range(max(0, item.declaration), item.position):
            if NARROW.fullmatch(tokens.text(place)) and code.function_places[place]:
                yield code.replaced(place, place, "float", "type of a sum too narrow")


def _in_half(code: KernelCode) -> Iterator[SourceChange]:
    """`__half2float(__hmul(a, b))` made `__half2float(a) * __half2float(b)`, also of two."""
    tokens, kind = code.tokens, "operation in half precision"
    for place in range(len(tokens) - 3):
        found = _IN_HALF.match(tokens.text(place) + "(" + tokens.text(place + 2) + "(")
        if found is None or not code.function_places[place] or place + 1 not in tokens.partners:
            continue
        values = [tokens.source(*pair) for pair in code.extents.arguments(place + 3)]
        end = tokens.partners[place + 1]
        call = tokens.text(place + 2)
        if found[1]:
            wide = [_widened(value, "__half2float") for value in values]
            sign = _SIGNS.get(call, "")
            new = f"({wide[0]} {sign} {wide[1]})" if sign else f"fmaf({', '.join(wide)})"
        else:
            sign = _SIGNS[call.rstrip("2")]
            one, other = (_widened(value, "__half22float2") for value in values)
            pairs = [
                " ".join((_member(one, axis), sign, _member(other, axis))) for axis in ("x", "y")
            ]
            new = f"make_float2({', '.join(pairs)})"
        yield code.replaced(place, end, new, kind)


def _widened(value: str, function: str) -> str:
    """A half made a float: what was rounded to a half for the operation, as it was."""
    narrow = "__float2half" if function == "__half2float" else "__float2half2_rn"
    found = re.fullmatch(rf"{narrow}(?:_rn)?\((.*)\)", value)
    return f"({found[1]})" if found else f"{function}({value})"


def _member(value: str, axis: str) -> str:
    return f"{value}.{axis}" if value.startswith("__half22float2(") else value
