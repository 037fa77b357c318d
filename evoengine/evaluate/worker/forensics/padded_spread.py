"""Variances that count places beyond the end of a row, each with the square of the mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead, is_last_axis
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep, StepRecorder
from evoengine.records import DiagnosisKind

WHOLE = (32, 64, 128, 256, 512, 1024, 2048, 4096)  # places that a row is filled up to a multiple of
SQUARES = {"pow", "square", "mul"}


def padded_spread(
    steps: Sequence[ReferenceStep], recorder: StepRecorder, tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """The changes of `value - mean` and of the sum of its squares."""
    by_place = {step.place: step for step in steps}
    products = [a * b for a in tiles for b in tiles if a < b] + [4 * one for one in tiles]
    for centred in steps:
        if centred.name != "sub":
            continue
        for summed in steps:
            if summed.name not in ("mean", "sum"):
                continue
            feeds = recorder.feeds.get(summed.place, ())
            square = by_place.get(feeds[0]) if feeds and feeds[0] is not None else None
            if square is None or square.name not in SQUARES:
                continue
            if recorder.feeds.get(square.place, (None,))[0] != centred.place:
                continue
            for size in dict.fromkeys((*tiles, *WHOLE, *products)):
                hold, use = _pair(size)
                yield ChangedStep(
                    DiagnosisKind.changed_step,
                    f"where the sum in {summed.words} also has the places beyond the end of a row,"
                    f" up to a multiple of {size}, as zeros less the mean",
                    {centred.place: hold, summed.place: use},
                    1.0,
                    mistake=f"places beyond the end of a row (padding up to a multiple of {size})"
                    f" are counted in {summed.result}: each adds the square of the mean",
                )


def _pair(size: int) -> tuple[Instead, Instead]:
    held: list[torch.Tensor] = []

    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        value, mean = args[0], args[1]
        extent = value.shape[-1]
        if not isinstance(mean, torch.Tensor) or mean.shape[-1] != 1 or not -extent % size:
            raise ValueError("no mean of a row, or no rest")
        held[:] = [mean.square() * (-extent % size)]
        return func(*args, **kwargs)

    def use(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        if not is_last_axis(args, kwargs) or found.shape != held[0].shape:
            raise ValueError("not along a row")
        return found + held[0] / (args[0].shape[-1] if func.__name__ == "mean" else 1)

    return hold, use
