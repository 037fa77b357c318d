"""Whole numbers: types that are too narrow or of the other sign, divisions that round otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.coupled_changes import together
from evoengine.evaluate.repair.source_change import SourceChange

_WIDER = {"int": "long long", "unsigned": "unsigned long long", "uint32_t": "unsigned long long"}
_ATOMICS = ("atomicMax", "atomicMin")
_OF_AN_EXTREME = 2  # arguments: the address and the value
_UNSIGNED = "unsigned"
_SIGNED_CAST = re.compile(r"\(int\) ?(.+)")


def integer_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Each sum of whole numbers, product with a number, atomic extreme and division by a power of
    two, changed.
    """
    yield from _wider(code)
    tokens = code.tokens
    for place in range(1, len(tokens)):
        if not code.function_places[place]:
            continue
        if tokens.text(place) in _ATOMICS and tokens.text(place + 1) == "(":
            yield from _of_other_sign(code, place + 1)
        elif tokens.text(place) == "/" and code.extents.is_binary(place):
            yield from _rounded_down(code, place)
        elif tokens.text(place) == "*" and tokens.kind(place - 1) == "number":
            yield from _next_in_a_product(code, place)


def _wider(code: KernelCode) -> Iterator[SourceChange]:
    """`int sum = 0;` made `long long sum = 0;` where something is added to it."""
    tokens = code.tokens
    for item in code.names.all:
        wider = _WIDER.get(tokens.text(item.declaration)) if item.position >= 0 else None
        is_alone = tokens.text(item.declaration + 1) == item.name and not item.is_parameter
        if wider is None or not is_alone or code.loop_of(item.position) is not None:
            continue
        is_sum = any(
            tokens.text(place) == item.name and tokens.text(place + 1) == "+="
            for place in range(item.position + 1, item.last)
        )
        if is_sum:
            at = item.declaration
            yield code.replaced(at, at, wider, "sum in a type too narrow")


def _of_other_sign(code: KernelCode, opening: int) -> Iterator[SourceChange]:
    """`atomicMax(peak + i, (int)key)` made `atomicMax((unsigned*)(peak + i), (unsigned)(key))`."""
    arguments = code.extents.arguments(opening)
    texts = [code.tokens.source(*pair) for pair in arguments]
    if len(texts) != _OF_AN_EXTREME:
        return
    address, value = texts
    if _UNSIGNED in address:
        return
    bare = _SIGNED_CAST.fullmatch(value)
    pair = [
        code.replaced(*arguments[0], f"({_UNSIGNED}*)({address})", ""),
        code.replaced(*arguments[1], f"({_UNSIGNED})({bare[1] if bare else value})", ""),
    ]
    yield together(pair, "atomic operation of the other sign")


def _rounded_down(code: KernelCode, place: int) -> Iterator[SourceChange]:
    """`v / (1 << BITS)` made `(v >> BITS)`, and `v / 8` made `(v >> 3)`."""
    tokens = code.tokens
    first, last = code.extents.operand_before(place)
    _, end = code.extents.operand_behind(place)
    by = tokens.source(place + 1, end)
    shift = re.fullmatch(r"\(1(?:[uUlL]*) << ([\w.:]+)\)", by)
    if shift is not None:
        bits = shift[1]
    elif by.isdigit() and int(by) > 1 and int(by) & (int(by) - 1) == 0:
        bits = str(int(by).bit_length() - 1)
    else:
        return
    if first == last and code.is_counter(first):
        new = f"({tokens.text(first)} >> {bits})"
        yield code.replaced(first, end, new, "division that rounds towards zero")


def _next_in_a_product(code: KernelCode, place: int) -> Iterator[SourceChange]:
    """`2 * exponent` made `2 * (exponent + 1)` and `2 * (exponent - 1)`."""
    first, last = code.extents.operand_behind(place)
    if code.extents.is_binary(place) and first == last and code.is_counter(first):
        for sign in "+-":
            new = f"({code.tokens.text(first)} {sign} 1)"
            yield code.replaced(first, last, new, "next in a product")
