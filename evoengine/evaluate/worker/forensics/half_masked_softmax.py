"""A softmax whose weights and whose sum see different elements: one of both lacks the mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_masks import MASK_TILES, any_in_tile
from evoengine.evaluate.worker.forensics.changed_step import MOST_TILES, ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep, StepRecorder
from evoengine.evaluate.worker.forensics.softmax_weights import along_last, finite, top
from evoengine.records import DiagnosisKind


def half_masked_softmax(
    steps: Sequence[ReferenceStep], recorder: StepRecorder, tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """The changes of a softmax behind a mask: without it in the sum, or in the weights alone, for
    all elements, or for those up to the end of a tile.
    """
    by_place = {step.place: step for step in steps}
    for step in steps:
        feeds = recorder.feeds.get(step.place, ())
        before = by_place.get(feeds[0]) if feeds and feeds[0] is not None else None
        if step.name != "softmax" or before is None:
            continue
        if before.name not in ("masked_fill", "masked_fill_"):
            continue
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
        more = held[0]

        def weights(masked: torch.Tensor) -> torch.Tensor:
            if more.shape != masked.shape:
                raise ValueError("another axis")
            highest = finite(torch.maximum(top(masked), top(more)))
            own, other = (masked - highest).exp(), (more - highest).exp()
            if in_sum:
                return own / other.sum(-1, keepdim=True)
            return other / own.sum(-1, keepdim=True)

        return along_last(weights)(func, args, kwargs)

    return hold, use
