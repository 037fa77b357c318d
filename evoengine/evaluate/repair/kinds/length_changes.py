"""Lengths of one's own in place of the size of all, and what two variables should not both read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.kinds.first_value_changes import Range, first_values
from evoengine.evaluate.repair.source_change import SourceChange

_WHOLE = frozenset(("int", "long", "unsigned", "short", "size_t"))
_MOST_LENGTHS = 4  # the last declared, and as many elements of tables
_MOST_STEPS = 6
_PRODUCT = re.compile(r"\b[A-Z]\w* \* [A-Z]\w*\b|\b[A-Z]\w*\b")


def length_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Sizes made lengths, equal elements made neighbours, counts kept below a constant."""
    yield from _lengths(code)
    yield from _same_element(code)
    yield from _counts(code)


def _lengths(code: KernelCode) -> Iterator[SourceChange]:
    """`t < T` made `t < length`, where `length = lengths[row]`; `2 * T` made `2 * lengths[row]`."""
    tokens = code.tokens
    elements = _elements(code)
    lengths = _length_names(code, elements)
    spots = [*code.conditions, *(value for _, value in first_values(code))]
    for first, last in dict.fromkeys(spots):
        for place in range(first, last + 1):
            own = code.names.at(place) if tokens.kind(place) == "name" else None
            is_size = own is not None and own.is_parameter and own.sort == "int"
            if not is_size or code.in_index(place):
                continue
            known = [item.name for item in code.visible(place, "int") if item.position in lengths]
            fitting = [text for text, pair in elements if code.can_stand(*pair, place)]
            for new in (*known[:_MOST_LENGTHS], *fitting[:_MOST_LENGTHS]):
                yield code.replaced(place, place, new, "length of its own for a size")


def _elements(code: KernelCode) -> list[tuple[str, Range]]:
    """Each element of a table of whole numbers that the kernel reads: its text and its tokens."""
    found: dict[str, Range] = {}
    for name, _, last in code.indices:
        table = code.names.at(name)
        if table is None or table.sort != "pointer" or not table.is_parameter:
            continue
        if _WHOLE & set(code.type_words(table)):
            found.setdefault(code.tokens.source(name, last + 1), (name, last + 1))
    return list(found.items())


def _length_names(code: KernelCode, elements: list[tuple[str, Range]]) -> set[int]:
    """The positions of the variables whose first value is or has such an element."""
    texts = [text for text, _ in elements]
    return {
        item.position
        for item, value in first_values(code)
        if item.sort == "int" and any(text in code.tokens.source(*value) for text in texts)
    }


def _same_element(code: KernelCode) -> Iterator[SourceChange]:
    """`a = x[i], b = x[i]` made `b = x[N + i]`: two variables do not need one element."""
    tokens = code.tokens
    steps = dict.fromkeys(_PRODUCT.findall(tokens.code))
    for (one, value), (other, again) in pairwise(first_values(code)):
        text = tokens.source(*again)
        is_element = text.endswith("]") and tokens.kind(again[0]) == "name"
        if text != tokens.source(*value) or not is_element or one.name == other.name:
            continue
        opening = tokens.partners.get(again[1], again[1])
        known = {item.name for item in code.visible(again[0], "int")}
        fitting = [step for step in steps if set(re.findall(r"[A-Za-z_]\w*", step)) <= known]
        fitting.sort(key=lambda step: "*" not in step)
        for step in (*fitting[:_MOST_STEPS], "1"):
            new = f"{step} + "
            yield code.inserted(opening, new, "element that two variables read")


def _counts(code: KernelCode) -> Iterator[SourceChange]:
    """`count = end - start` made `min(LANES, end - start)`, by a constant of the kernel."""
    tokens = code.tokens
    for item, value in first_values(code):
        text = tokens.source(*value)
        is_difference = re.fullmatch(r"[\w.]+ - [\w.]+", text) is not None
        is_count = is_difference and re.search(rf"< {item.name}\b", code.scope(item))
        if item.sort != "int" or not is_count:
            continue
        constants = [
            it.name
            for it in code.visible(value[0], "int")
            if not it.is_parameter and it.name.isupper() and it.name not in text
        ]
        for constant in (*constants[:_MOST_LENGTHS], "32"):
            yield code.replaced(*value, f"min({constant}, {text})", "count without its limit")
