"""Sums and maxima that are not the same in all lanes of a row: each lane uses its own.

A butterfly of shuffles that lacks a step, or does one twice, leaves different totals in different
lanes; so does a tree of shuffles down whose result only the first lane has.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_reductions import (
    all_and_each,
    names_of,
    together,
)
from evoengine.evaluate.worker.forensics.changed_step import (
    ChangedStep,
    Instead,
    is_last_axis,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.softmax_weights import in_turn

LANES = (32, 4, 8, 16, 2)  # that share a row
WIDTHS = (1, 4, 8, 2)  # neighbouring elements of one lane
REDUCED = {"sum", "mean", "amax", "amin"}


def lane_totals(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """The changes of reductions whose results are broadcast to the rows that they are made of: all
    together, as by a function that they share, and each by itself.
    """
    for group in all_and_each([step for step in steps if step.name in REDUCED]):
        for width, lanes in itertools.product(WIDTHS, LANES):
            for words, counts in lane_counts(lanes).items():
                yield together(
                    group,
                    f"with a result of its own in each of {lanes} lanes of {width} for"
                    f" {names_of(group)}",
                    _by_lane(counts, width),
                    f"the lanes that share a row do not have the same {names_of(group)}: {words},"
                    " so each uses its own partial sum or maximum",
                    1.0,
                )


def lane_counts(lanes: int) -> Mapping[str, torch.Tensor]:
    """How often each lane (row) has counted each one (column) after wrong shuffles, by words."""
    steps = [1 << number for number in range(lanes.bit_length() - 1)]
    found: dict[str, torch.Tensor] = {}
    for missing in steps:
        others = [one for one in steps if one != missing]
        found[f"the shuffle over {missing} of {lanes} lanes is missing"] = _butterfly(lanes, others)
        if others:
            found[
                f"the shuffle over {missing} of {lanes} lanes goes over another distance again:"
                " some lanes count twice, the others not at all"
            ] = _butterfly(lanes, [others[0], *others])
    found[
        f"shuffles down over {lanes} lanes leave the whole in the first lane alone, which is not"
        " broadcast to the others"
    ] = _down(lanes, steps[::-1])
    return found


def _butterfly(lanes: int, steps: Sequence[int]) -> torch.Tensor:
    at = torch.arange(lanes)
    counts = torch.eye(lanes, dtype=torch.float64)
    for step in steps:
        counts = counts + counts[at ^ step]
    return counts


def _down(lanes: int, steps: Sequence[int]) -> torch.Tensor:
    """Lanes beyond the end take their own value again."""
    at = torch.arange(lanes)
    counts = torch.eye(lanes, dtype=torch.float64)
    for step in steps:
        counts = counts + counts[torch.where(at + step < lanes, at + step, at)]
    return counts


def _by_lane(counts: torch.Tensor, width: int) -> Instead:
    lanes = len(counts)

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        right = func(*args, **kwargs)
        value, name = args[0], func.__name__
        extent = value.shape[-1]
        if not is_last_axis(args, kwargs) or right.dim() != value.dim() or extent <= lanes:
            raise ValueError("not along a row")
        lane = in_turn(width, lanes)(extent)
        seen = counts[:, lane].to(value.device)  # how often each lane counts each element
        if name in ("sum", "mean"):
            own = value @ seen.to(value.dtype).T
            own = own / extent if name == "mean" else own
        else:
            hidden = seen == 0
            filler = float("-inf") if name == "amax" else float("inf")
            many = value.unsqueeze(-2).masked_fill(hidden, filler)
            own = many.amax(-1) if name == "amax" else many.amin(-1)
        return own[..., lane.to(value.device)]

    return instead
