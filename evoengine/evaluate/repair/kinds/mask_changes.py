"""Comparisons of two positions that a mask lacks, and bounds that a mask lowers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_NEAREST = 6  # variables, the last declared first
_BEFORE = ("(", "&&", "||", "?", "=", "!")
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")


def mask_changes(code: KernelCode) -> Iterator[SourceChange]:
    """Each condition with a comparison of two variables added, under each flag of the kernel."""
    for first, last in code.conditions:
        if code.loop_of(first) is not None:
            continue
        own = code.tokens.source(first, last)
        for comparison in _comparisons(code, first):
            new = f"({own}) && ({comparison})"
            yield code.replaced(first, last, new, "mask missing")
            if "&&" not in own and "||" not in own:
                yield code.replaced(first, last, comparison, "mask of other positions")
        yield from _bounds(code, first, last)
    yield from _lower_bounds(code)
    yield from _places_in_a_tile(code)


def _places_in_a_tile(code: KernelCode) -> Iterator[SourceChange]:
    """`start + c < S && c <= row` made `... && start + c <= row`: both compare one position."""
    tokens = code.tokens
    for first, last in code.conditions:
        text = tokens.source(first, last)
        for place in range(first, last + 1):
            own = code.names.at(place) if tokens.kind(place) == "name" else None
            is_alone = tokens.text(place - 1) in _BEFORE and tokens.text(place + 1) in _COMPARED
            if own is None or own.sort != "int" or not is_alone:
                continue
            for whole in dict.fromkeys(re.findall(rf"\b[A-Za-z_]\w* \+ {own.name}\b", text)):
                yield code.replaced(place, place, whole, "place within its tile in a condition")


def _bounds(code: KernelCode, first: int, last: int) -> Iterator[SourceChange]:
    """A variable of a condition compared with one more: a size, or a position under a flag."""
    own = code.tokens.source(first, last)
    items = dict.fromkeys(
        code.names.at(place)
        for place in range(first, last + 1)
        if code.tokens.kind(place) == "name" and not code.in_index(place)
    )
    compared = [item for item in items if item is not None and item.sort == "int"]
    inside = [item for item in compared if not item.is_parameter and not item.name.isupper()]
    visible = [item for item in code.visible(first, "int") if item not in compared]
    sizes = [item.name for item in visible if item.is_parameter or item.name.isupper()]
    near = [item.name for item in visible if item.name not in sizes][:_NEAREST]
    flags = _flags(code, first)
    for name in [item.name for item in inside]:
        for size in sizes:
            if size not in flags:
                new = f"({own}) && {name} < {size}"
                yield code.replaced(first, last, new, "bound of a condition missing")
        for other in near if ">" in own else ():
            for flag in flags:
                new = f"({own}) || ({flag} && {name} > {other})"
                yield code.replaced(first, last, new, "case of a mask missing")


def _comparisons(code: KernelCode, position: int) -> Iterator[str]:
    names = [item for item in code.visible(position, "int") if not item.name.isupper()]
    near = [item for item in names if not item.is_parameter][:_NEAREST]
    flags = ["", *(f"!{name} || " for name in _flags(code, position))]
    for one in near:
        for other in near:
            if one.name != other.name:
                for flag in flags:
                    yield f"{flag}{one.name} <= {other.name}"


def _flags(code: KernelCode, position: int) -> list[str]:
    """The parameters that are flags: they are declared as bool."""
    return [
        item.name
        for item in code.visible(position, "int")
        if item.is_parameter and code.tokens.text(item.position - 1) == "bool"
    ]


def _lower_bounds(code: KernelCode) -> Iterator[SourceChange]:
    """A bound that is one parameter, lowered to one more than a position under a flag."""
    for first, last in code.values:
        own = code.names.at(first)
        if first != last or own is None or own.sort != "int" or not own.is_parameter:
            continue
        near = [item for item in code.visible(first, "int") if not item.is_parameter][:_NEAREST]
        for flag in _flags(code, first):
            for item in near:
                new = f"({flag} ? {item.name} + 1 : {own.name})"
                yield code.replaced(first, last, new, "bound of the mask missing")
