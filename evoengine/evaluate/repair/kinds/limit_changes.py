"""Limits: what a maximum begins with, ends that no bound keeps, bits that no mask keeps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from evoengine.evaluate.repair.declared_names import DeclaredName
from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.first_value_changes import ZERO, first_values
from evoengine.evaluate.repair.kinds.number_changes import INFINITIES
from evoengine.evaluate.repair.source_change import SourceChange

_LOWEST = re.compile(
    r"-\s*(INFINITY|FLT_MAX|\d+(\.\d*)?e\d+f?)|INT_MIN|__int_as_float\(0xff800000\)"
)
_END = re.compile(r"\w*(end|last|stop|limit|high|until)\w*|[a-z]+1", re.IGNORECASE)

_LIMITED = re.compile(r"\bmin\(([A-Za-z_]\w*), \w+ - ")

# a function of two that returns one of them
_OF_TWO = re.compile(
    r"\b(\w+)\(\w+ (\w+), \w+ (\w+)\)(?: const)? ?\{\s*return \w+ [<>]=? \w+ \? \w+ : \w+;"
)
_MOST_SIZES = 4
_MOST_MASKS = 2
_MOST_TERMS = 4

Range = tuple[int, int]


def limit_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Changes of first values and ends of ranges to what limits them."""
    values = first_values(code)
    for item, value in values:
        yield from _lowest(code, item, value)
        yield from _ends(code, item, value)
        yield from _offsets(code, item, value)
        yield from _nominal(code, item, value)
    for (_, one), (item, other) in pairwise(values):
        yield from _same_begin(code, one, item, other)
    yield from _bits(code)
    yield from _by_own_functions(code, values)


def _by_own_functions(
    code: KernelCode, values: list[tuple[DeclaredName, Range]]
) -> Iterator[SourceChange]:
    """`tail = last * G;` made `tail = larger(head_end, last * G);` with a function of the kernel
    that returns the larger or smaller of two.
    """
    limits = [name for name, one, other in _OF_TWO.findall(code.tokens.code) if one != other]
    whole = [value for item, value in values if item.sort == "int"]
    for first, last in code.assignments if limits else ():
        if code.tokens.text(first + 1) == "=":
            whole.append((first + 2, last - 1))
    for first, last in whole if limits else ():
        text = code.tokens.source(first, last)
        if "*" not in text or any(f"{name}(" in text for name in limits):
            continue
        near = [it.name for it in code.visible(first, "int") if not it.is_parameter]
        for name in [it for it in near if not it.isupper() and it not in text][:_MOST_SIZES]:
            for limit in dict.fromkeys(limits):
                new = f"{limit}({name}, {text})"
                yield code.replaced(first, last, new, "limit by a function of the kernel missing")


def _lowest(code: KernelCode, item: DeclaredName, value: Range) -> Iterator[SourceChange]:
    """A sum that begins with the lowest number, a largest or least one that begins with zero."""
    text = code.tokens.source(*value)
    scope = code.scope(item)
    if _LOWEST.fullmatch(text) and re.search(rf"\b{item.name} \+=", scope):
        yield code.replaced(*value, "0.0f", "sum that begins with the lowest")
    if not ZERO.fullmatch(text):
        return
    kind = "largest that begins with zero"
    if item.sort == "int" and re.search(rf"\b(max|atomicMax)\([^;]*\b{item.name}\b", scope):
        yield code.replaced(*value, "-2147483647 - 1", kind)
    for function, infinity in zip(("fmaxf", "fminf"), INFINITIES, strict=True):
        taken = re.search(rf"\b{item.name} = {function}\([^;]*\b{item.name}\b", scope)
        compared = function == "fmaxf" and re.search(rf"if \(\w+ > {item.name}\)", scope)
        if item.sort == "float" and (taken or compared):
            yield code.replaced(*value, infinity, kind)


def _ends(code: KernelCode, item: DeclaredName, value: Range) -> Iterator[SourceChange]:
    """`end = first + SIZE` made `min(first + SIZE, N)`."""
    text = code.tokens.source(*value)
    scope = code.scope(item)
    is_bound = re.search(rf"< {item.name};", scope) or _END.fullmatch(item.name)
    if item.sort != "int" or not is_bound or "min(" in text or not re.search(r"[+*]", text):
        return
    sizes = [it.name for it in code.visible(value[0], "int") if it.is_parameter]
    for size in [name for name in sizes if name not in text][:_MOST_SIZES]:
        for limit in (size, f"{size} - 1"):
            yield code.replaced(*value, f"min({text}, {limit})", "end without its limit")


def _nominal(code: KernelCode, item: DeclaredName, value: Range) -> Iterator[SourceChange]:
    """`sum / share` made `sum / size` behind `size = min(share, N - first)`: the last part is
    smaller.
    """
    tokens = code.tokens
    nominal = set(_LIMITED.findall(tokens.source(*value)))
    for place in range(value[1] + 1, item.last + 1) if item.sort == "int" else ():
        is_factor = "*" in (tokens.text(place - 1), tokens.text(place + 1))
        if tokens.text(place) in nominal and tokens.text(place - 1) != "." and not is_factor:
            yield code.replaced(place, place, item.name, "nominal size of a part")


def _offsets(code: KernelCode, item: DeclaredName, value: Range) -> Iterator[SourceChange]:
    """`left = S - first` made `S - first - half * (N / 2)`, where indices add half * (N / 2)."""
    text = code.tokens.source(*value)
    if item.sort != "int" or not re.search(r" - \w+$", text):
        return
    terms = Counter(re.findall(r"\+ (\w+ \* (?:\w+|\([^()]*\)))(?=[\]\s)])", code.tokens.code))
    names = {it.name for it in code.names.visible(value[0])}
    for term, count in terms.most_common(_MOST_TERMS):
        known = set(re.findall(r"\b[A-Za-z_]\w*", term)) <= names
        if count > 1 and known and term not in text:
            yield code.inserted(value[1], f" - {term}", "offset that others add")


def _same_begin(
    code: KernelCode, one: Range, item: DeclaredName, other: Range
) -> Iterator[SourceChange]:
    """`from = base, to = base` made `to = base + (STAGES - 1) * SIZE`, where the kernel has
    base + STAGES * SIZE.
    """
    text = code.tokens.source(*other)
    is_name = one[0] == one[1] and code.tokens.text(one[0]) == text
    if not is_name or not text.isidentifier() or item.sort not in ("int", "pointer"):
        return
    found = re.findall(rf"\b{text} \+ (\w+) \* (\w+)", code.tokens.code)
    for count, size in list(dict.fromkeys(found))[:_MOST_TERMS]:
        for new in (f"({count} - 1) * {size}", f"{count} * {size}", size):
            yield code.inserted(other[1], f" + {new}", "begin of another stage")


def _bits(code: KernelCode) -> Iterator[SourceChange]:
    """`x >> 4` made `x >> 4 & 15`, by the masks of the kernel."""
    tokens = code.tokens
    masks = Counter(re.findall(r"& (0x[fF]+u?|\d+u?)\b", tokens.code))
    own = [text for text, _ in masks.most_common() if text not in ("1", "31")][:_MOST_MASKS]
    for position in range(len(tokens)):
        if tokens.text(position) != ">>" or not code.extents.is_binary(position):
            continue
        last = code.extents.operand_behind(position)[1]
        if tokens.text(last + 1) != "&" and code.function_places[position]:
            for mask in own:
                yield code.inserted(last, f" & {mask}", "bits that no mask keeps")
