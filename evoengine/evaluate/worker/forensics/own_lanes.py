"""Products in which each lane multiplies by the term that it holds itself, because the shuffle that
brings the one of another lane is missing or reads the own lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

WIDTHS = (32, 16, 8)

# (columns, lanes) -> the lane of each column
LaneOf = Callable[[int, int], torch.Tensor]
LANES: Mapping[str, LaneOf] = {
    "one after the other": lambda columns, lanes: torch.arange(columns) % lanes,
    "by twos": lambda columns, lanes: torch.arange(columns) // 2 % lanes,
    "by fours": lambda columns, lanes: torch.arange(columns) // 4 % lanes,
    "by eights": lambda columns, lanes: torch.arange(columns) // 8 % lanes,
    "in equal shares": lambda columns, lanes: (
        torch.arange(columns) // max(1, columns // lanes) % lanes
    ),
}


def own_lanes(step: ReferenceStep) -> Iterator[ChangedStep]:
    """The changes of a step that is a matrix product whose terms the lanes of a warp share out."""
    if step.name != "matmul":
        return
    named = step.operand(0) or "the first operand"
    for width in WIDTHS:
        for words, lane_of in LANES.items():
            own = change(
                step,
                f"where the columns, {words} to {width} lanes, are multiplied by the {named} of"
                f" their own lane ({step.words})",
                _with_own(width, lane_of),
                1.0,
                f"each lane multiplies by its own {named} in place of that of the term (key, k):"
                " the shuffle (broadcast from the lane that holds it) reads the own lane or is"
                " missing",
            )
            yield replace(own, of_whole=True)  # a window may leave out columns


def _with_own(width: int, lane_of: LaneOf) -> Instead:
    def instead(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
        left, right = args[0].to(torch.float64), args[1].to(torch.float64)
        terms, columns = right.shape[-2], right.shape[-1]
        tiles = -(-terms // width)
        if tiles == 1 and terms < 2:
            raise ValueError("one term")
        more = tiles * width - terms
        left = torch.nn.functional.pad(left, (0, more)).unflatten(-1, (tiles, width))
        right = torch.nn.functional.pad(right, (0, 0, 0, more)).unflatten(-2, (tiles, width))
        own = left[..., lane_of(columns, width)]  # (..., rows, tiles, columns)
        return torch.einsum("...rtc,...tc->...rc", own, right.sum(-2))

    return instead
