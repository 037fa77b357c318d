"""Sums of two names of which one counts in steps of the other's number: the factor is missing."""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange

_MOST_FACTORS = 8  # for a sum, those that are read most often


def digit_changes(code: KernelCode) -> Iterator[SourceChange]:
    """`round + warp` made `round * WARPS + warp`, and `warp + round` made `warp + round * WARPS`,
    with each number of the kernel that is no variable.
    """
    for place in range(1, len(code.tokens) - 1):
        is_sum = code.tokens.text(place) == "+" and code.extents.is_binary(place)
        if not is_sum or not code.function_places[place]:
            continue
        pair = code.extents.operand_before(place), code.extents.operand_behind(place)
        if not all(first == last and code.is_counter(first) for first, last in pair):
            continue
        for _, last in pair:
            for name in code.constants(place)[:_MOST_FACTORS]:
                yield code.inserted(last, f" * {name}", "factor of a digit missing")
