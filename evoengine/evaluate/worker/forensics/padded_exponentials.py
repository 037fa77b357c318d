"""Sums of exponentials that count places beyond the end of a row as scores of zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep, StepRecorder
from evoengine.records import DiagnosisKind

WHOLE = (32, 64, 128, 256, 512, 1024, 16, 8, 4)  # places that a row is filled up to a multiple of


def padded_exponentials(
    steps: Sequence[ReferenceStep], recorder: StepRecorder, tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """The changes of `(scores - maximum).exp().sum()`: each place adds exp(0 - maximum)."""
    by_place = {step.place: step for step in steps}

    def before(step: ReferenceStep | None) -> ReferenceStep | None:
        feeds = recorder.feeds.get(step.place, ()) if step is not None else ()
        return by_place.get(feeds[0]) if feeds and feeds[0] is not None else None

    for summed in steps:
        exponential = before(summed)
        shifted = before(exponential)
        if summed.name != "sum" or exponential is None or exponential.name != "exp":
            continue
        if shifted is None or shifted.name != "sub":
            continue
        for size in dict.fromkeys((*tiles, *WHOLE)):
            hold, use = _pair(size)
            yield ChangedStep(
                DiagnosisKind.changed_step,
                f"where the sum in {summed.words} also has the places beyond the end of a row, up"
                f" to a multiple of {size}, as scores of 0",
                {shifted.place: hold, summed.place: use},
                1.0,
                mistake=f"places beyond the end of a row (padding up to a multiple of {size}) are"
                f" counted in {summed.result} as scores of zero, not left out (minus infinity):"
                f" each adds exp(0 - {shifted.operand(1) or 'maximum'})",
            )


def _pair(size: int) -> tuple[Instead, Instead]:
    held: list[torch.Tensor] = []

    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        held[:] = [args[1]]
        return func(*args, **kwargs)

    def use(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        terms = args[0].numel() // max(1, found.numel())
        if held[0].numel() != found.numel() or not -terms % size:
            raise ValueError("no maximum of a row, or no rest")
        return found + (-terms % size) * (-held[0]).exp().view(found.shape)

    return hold, use
