"""Weights of a softmax over some columns, in parts, or along any axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import Instead

# (scores, along their last axis) -> weights
Weights = Callable[[torch.Tensor], torch.Tensor]
# (number of columns) -> the part of each
Parting = Callable[[int], torch.Tensor]


def in_turn(width: int, parts: int) -> Parting:
    """Parts that take `width` columns in turn."""
    return lambda extent: torch.arange(extent) // width % parts


def in_a_row(parts: int) -> Parting:
    """Parts of neighbouring columns."""
    return lambda extent: torch.arange(extent) // max(1, -(-extent // parts))


def of_size(size: int) -> Parting:
    """Parts of `size` neighbouring columns."""
    return lambda extent: torch.arange(extent) // size


def along_last(weights: Weights) -> Instead:
    """A softmax step with these weights, along whichever axis it runs."""

    def instead(_func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        axis = int(kwargs.get("dim", args[1] if len(args) > 1 else -1))
        if args[0].shape[axis] < 2:
            raise ValueError("one element")
        return weights(args[0].movedim(axis, -1)).movedim(-1, axis)

    return instead


def is_last(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a softmax runs along the last axis."""
    axis = int(kwargs.get("dim", args[1] if len(args) > 1 else -1))
    return axis in (-1, args[0].dim() - 1)


def top(scores: torch.Tensor) -> torch.Tensor:
    """The maximum of each row."""
    return scores.amax(-1, keepdim=True)


def finite(maximum: torch.Tensor) -> torch.Tensor:
    """Maxima of rows that are hidden whole as 0."""
    return maximum.masked_fill(maximum == -math.inf, 0)


def behind(scores: torch.Tensor, start: int) -> torch.Tensor:
    """Which columns are `start` or behind."""
    if not 0 < start < scores.shape[-1]:
        raise ValueError("none or all")
    return torch.arange(scores.shape[-1], device=scores.device) >= start


def without_columns(scores: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """A softmax in which some columns are hidden."""
    return scores.masked_fill(columns, -math.inf).softmax(-1)


def with_sum_over(scores: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Divided by the sum over some columns alone."""
    power = (scores - finite(top(scores))).exp()
    return power / (power * columns).sum(-1, keepdim=True)


def by_part(
    scores: torch.Tensor, part: torch.Tensor, made: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """The weights that `made` gives for each part by itself."""
    number = int(part.max()) + 1
    if number < 2:
        raise ValueError("one part")
    whole = torch.empty_like(scores)
    for one in range(number):
        own = (part == one).nonzero().flatten().to(scores.device)
        whole[..., own] = made(scores[..., own])
    return whole


def is_part(scores: torch.Tensor, parting: Parting, number: int) -> torch.Tensor:
    """Which columns are of part `number`, counted from the end where negative."""
    part = parting(scores.shape[-1]).to(scores.device)
    return part == (number if number >= 0 else int(part.max()) + 1 + number)
