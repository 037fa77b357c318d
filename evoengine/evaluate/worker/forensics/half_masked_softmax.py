"""A softmax whose weights and whose sum see different elements: one of both lacks the mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_masks import MASK_TILES, any_in_tile
from evoengine.evaluate.worker.forensics.changed_step import MOST_TILES, ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep
from evoengine.evaluate.worker.forensics.softmax_weights import along_last, finite, top
from evoengine.records import DiagnosisKind


def half_masked_softmax(
    steps: Sequence[ReferenceStep], tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """The changes of a softmax behind a mask: without it in the sum, or in the weights alone, for
    all elements, or for those up to the end of a tile.
    """
    masks = [step for step in steps if step.name in ("masked_fill", "masked_fill_")]
    for step in steps:
        earlier = [mask for mask in masks if mask.order < step.order]
        if step.name != "softmax" or not earlier:
            continue
        before = earlier[-1]
        for tile in (0, *dict.fromkeys((*tiles[:MOST_TILES], *MASK_TILES))):
            where = f" inside of the tiles of {tile} that it cuts" if tile else ""
            for in_sum, what in (
                (True, "the sum (the denominator) of the softmax: masked (later) elements count"
                 " in it, though they get no weight"),
                (False, "the weights: masked (later) elements get one, though the sum (the"
                 " denominator) does not count them"),
            ):  # fmt: skip
                hold, use = _pair(tile, in_sum)
                yield ChangedStep(
                    DiagnosisKind.mask,
                    f"with {before.words} missing{where} in"
                    f" {'the sum' if in_sum else 'the weights'} of {step.words} alone",
                    {before.place: hold, step.place: use},
                    1.05,
                    mistake=f"the mask is missing{where} in {what}",
                )


def _pair(tile: int, in_sum: bool) -> tuple[Instead, Instead]:
    """What the mask and the softmax do: the first keeps what it was given for the second."""
    held: list[torch.Tensor] = []

    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        scores, mask = args[0], args[1]
        seen = any_in_tile(~mask.expand(scores.shape), tile, tile) if tile else None
        held[:] = [scores.clone() if seen is None else scores.masked_fill(~seen, float("-inf"))]
        return func(*args, **kwargs)

    def use(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        def weights(masked: torch.Tensor) -> torch.Tensor:
            extent = held[0].shape[-1]
            if held[0].shape[:-1] != masked.shape[:-1] or extent > masked.shape[-1]:
                raise ValueError("another axis")
            # what was put behind the scores, such as a sink, has no mask
            more = torch.cat((held[0], masked[..., extent:]), -1)
            highest = finite(torch.maximum(top(masked), top(more)))
            own, other = (masked - highest).exp(), (more - highest).exp()
            if in_sum:
                return own / other.sum(-1, keepdim=True)
            return other / own.sum(-1, keepdim=True)

        return along_last(weights)(func, args, kwargs)

    return hold, use
