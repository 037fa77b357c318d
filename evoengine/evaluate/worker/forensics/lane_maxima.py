"""Attention whose maximum is not the same in all lanes of a row.

Where a shuffle of the maximum is missing, some lanes weigh their keys relative to another maximum
than the others. The weights are exchanged, and each lane adds up values for its own columns, which
it rescales by its own maximum.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.softmax_weights import in_turn
from evoengine.records import DiagnosisKind

LOWEST = -1e30
# neighbouring keys, and neighbouring columns, of lanes that have one maximum; two in turn
HALVES = ((16, 16), (8, 2), (16, 4), (1, 1), (4, 4), (2, 2), (8, 8))
TILES = (32, 64, 16)
MOST_TILES = 2
MOST_SPLITS = 8
LARGEST = 1 << 18  # scores: tile after tile takes several times as long as all at once


def lane_maxima(steps: Sequence[ReferenceStep], tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of every product behind a softmax."""
    before: ReferenceStep | None = None
    sizes = list(dict.fromkeys((*(one for one in tiles if one in TILES), *TILES)))[:MOST_TILES]
    splits = [1, *[one for one in tiles if one <= MOST_SPLITS][:1]]
    for step in steps:
        if step.name == "softmax":
            before = step
        elif step.name == "matmul" and before is not None:
            for (keys, columns), tile, parts in itertools.product(HALVES, sizes, splits):
                hold, use = _pair(keys, columns, tile, parts)
                in_splits = f" and {parts} splits" if parts > 1 else ""
                yield ChangedStep(
                    DiagnosisKind.changed_step,
                    f"in tiles of {tile} keys{in_splits}, where {keys} of every {2 * keys} keys"
                    f" have a maximum of their own, as have {columns} of every"
                    f" {2 * columns} columns, in {step.words}",
                    {before.place: hold, step.place: use},
                    1.0,
                    mistake="the maximum of the softmax is found over a part of the lanes only"
                    " (half a warp, or every second lane), as where a shuffle is missing: the two"
                    " parts weigh their keys relative to different maxima",
                    of_whole=True,
                )
            before = None


def _pair(keys: int, columns: int, tile: int, splits: int) -> tuple[Instead, Instead]:
    held: list[torch.Tensor] = []

    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        held[:] = [args[0]]
        return func(*args, **kwargs)

    def use(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
        scores, values = held[0].clamp_min(LOWEST), args[1]
        if scores.shape != args[0].shape or values.dim() < 2 or scores.shape[-1] <= keys:
            raise ValueError("no weights of these scores")
        if scores.numel() > LARGEST:
            raise ValueError("that would take too long")
        extent = scores.shape[-1]
        size = -(-extent // splits)
        lane = in_turn(columns, 2)(values.shape[-1]).to(values.device)
        parts = [
            _one_part(scores[..., at : at + size], values[..., at : at + size, :], keys, tile, lane)
            for at in range(0, extent, size)
        ]
        highest = torch.stack([top for top, _, _ in parts]).amax(0)
        factors = [(top - highest).exp() for top, _, _ in parts]
        total = torch.stack([f * one for f, (_, _, one) in zip(factors, parts, strict=True)])
        made = torch.stack(
            [f.unsqueeze(-1) * one for f, (_, one, _) in zip(factors, parts, strict=True)]
        )
        return made.sum(0) / total.sum(0).unsqueeze(-1)

    return hold, use


def _one_part(
    scores: torch.Tensor, values: torch.Tensor, keys: int, tile: int, lane: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The maximum of the first lanes, the sums of values, and the sum of weights of all lanes."""
    rows = scores.shape[:-1]
    top = scores.new_full((*rows, 2), LOWEST)
    total = scores.new_zeros(*rows, 2)
    made = scores.new_zeros(*rows, values.shape[-1])
    for start in range(0, scores.shape[-1], tile):
        own = scores[..., start : start + tile]
        half = in_turn(keys, 2)(own.shape[-1]).to(own.device)
        first = half == 0
        found = torch.stack(
            [own.masked_fill(~chosen, LOWEST).amax(-1) for chosen in (first, ~first)],
            -1,
        )
        high = torch.maximum(top, found)
        shrink = (top - high).exp()
        weights = (own - high[..., half]).exp() * (own > LOWEST)
        sums = [(weights * chosen).sum(-1) for chosen in (first, ~first)]
        total = total * shrink + torch.stack(sums, -1)
        made = made * shrink[..., lane] + weights @ values[..., start : start + tile, :]
        top = high
    return top[..., 0], made, total.sum(-1)
