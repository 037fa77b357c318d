"""Sums of two names of which one counts in steps of the other's number: the factor is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_FACTORS = 8  # for a sum, those that are read most often


def digit_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`round + warp` made `round * WARPS + warp`, and `warp + round` made `warp + round * WARPS`,
    with each number of the kernel that is no variable.
    """
    yield from _next_in_a_product(code)
    tokens = code.tokens
    uses = Counter(tokens.text(place) for place in range(len(tokens)))
    for place in range(1, len(tokens) - 1):
        is_sum = tokens.text(place) == "+" and code.extents.is_binary(place)
        if not is_sum or not code.function_places[place]:
            continue
        pair = code.extents.operand_before(place), code.extents.operand_behind(place)
        if not all(_is_bare(code, *operand) for operand in pair):
            continue
        factors = [item.name for item in code.visible(place, "int") if item.name.isupper()]
        factors.sort(key=lambda name: -uses[name])
        for _, last in pair:
            for name in factors[:_MOST_FACTORS]:
                yield code.inserted(last, f" * {name}", "factor of a digit missing")


def _next_in_a_product(code: KernelCode) -> Iterator[SourceChange]:
    """`2 * exponent` made `2 * (exponent + 1)` and `2 * (exponent - 1)`."""
    tokens = code.tokens
    for place in range(1, len(tokens) - 1):
        is_product = tokens.text(place) == "*" and tokens.kind(place - 1) == "number"
        if not is_product or not code.function_places[place]:
            continue
        first, last = code.extents.operand_behind(place)
        if code.extents.is_binary(place) and first == last and _is_counted(code, first):
            for sign in "+-":
                new = f"({tokens.source(first, last)} {sign} 1)"
                yield code.replaced(first, last, new, "next in a product")


def _is_counted(code: KernelCode, place: int) -> bool:
    """Whether a token is a variable that counts something."""
    item = code.names.at(place) if code.tokens.kind(place) == "name" else None
    return item is not None and item.sort == "int" and not item.name.isupper()


def _is_bare(code: KernelCode, first: int, last: int) -> bool:
    """Whether an operand is such a variable alone."""
    return first == last and _is_counted(code, first)
