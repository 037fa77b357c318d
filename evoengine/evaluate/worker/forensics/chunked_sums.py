"""Sums up to the own position, in chunks whose state is lost, kept wrongly, or not added.

Linear attention, state-space models and other recurrences in chunks sum over all earlier positions:
inside of a chunk by a masked product, before it by a state that is carried along. Where the state
is wrong, each row lacks whole chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_reductions import all_and_each
from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    Instead,
    is_last_axis,
)
from evoengine.evaluate.worker.forensics.reference_steps import Place, ReferenceStep
from evoengine.records import DiagnosisKind

CHUNKS = (16, 32, 64, 128)
MASKS = {"tril", "triu", "masked_fill", "masked_fill_", "where", "softmax"}
# chunks between that of a row and that of a column -> how often the column counts
Counted = Callable[[torch.Tensor], torch.Tensor]
CHOICES: tuple[tuple[str, Counted], ...] = (
    (
        "has the own chunk alone: what the chunks (tiles) before it added is lost, the state (the"
        " carry) is missing or begins at zero in each",
        lambda apart: apart == 0,
    ),
    (
        "has the own chunk and the one before it alone: the state is overwritten by each chunk in"
        " place of added up, so that earlier ones are forgotten",
        lambda apart: apart <= 1,
    ),
    (
        "lacks the own chunk: only the state of earlier chunks is added",
        lambda apart: apart != 0,
    ),
    (
        "lacks the chunk just before the own one: the state is updated too late, or read too early",
        lambda apart: apart != 1,
    ),
    (
        "has the own chunk twice: the state has it already when it is added",
        lambda apart: 1 + (apart == 0).long(),
    ),
)


def chunked_sums(steps: Sequence[ReferenceStep], tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of sums and products behind a mask, each by itself and together."""
    masks = [step.order for step in steps if step.name in MASKS]
    behind = [
        step
        for step in steps
        if step.name in ("sum", "matmul") and masks and step.order > min(masks)
    ]
    for chunk in dict.fromkeys((*tiles[:MOST_TILES], *CHUNKS)):
        for said, counted in CHOICES:
            for group in all_and_each(behind):
                names = " and ".join(_called(step) for step in group)
                changes: Mapping[Place, Instead] = {
                    step.place: _in_chunks(chunk, counted) for step in group
                }
                yield ChangedStep(
                    DiagnosisKind.changed_step,
                    f"where {names}, in chunks of {chunk}, {said.split(':')[0]}"
                    f" ({' and '.join(step.words for step in group)})",
                    changes,
                    1.0,
                    mistake=f"{names} {said} (chunks of {chunk})",
                )


def _called(step: ReferenceStep) -> str:
    if step.name == "sum":
        return f"the sum of weights {step.result} (a denominator, normaliser)"
    return f"the sum of products {step.result}"


def _in_chunks(chunk: int, counted: Counted) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        weights = args[0]
        if weights.dim() < 2 or weights.shape[-1] != weights.shape[-2]:
            raise ValueError("no weights of all positions")
        if func.__name__ == "sum" and not is_last_axis(args, kwargs):
            raise ValueError("another axis")
        at = torch.arange(weights.shape[-1], device=weights.device) // chunk
        if int(at[-1]) == 0:
            raise ValueError("one chunk")
        times = counted((at.unsqueeze(1) - at.unsqueeze(0)).abs())
        return func(weights * times, *args[1:], **kwargs)

    return instead
