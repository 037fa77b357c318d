"""The k largest of a row (top-k, routing) of which one is another, or missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

# (values or indices of the k + 1 largest, k) -> those that are taken
Taken = Callable[[torch.Tensor, int], torch.Tensor]
CHOICES: tuple[tuple[str, str, Taken], ...] = (
    (
        "without the last one",
        "the last of the k largest is missing: only k - 1 are chosen (top k - 1)",
        lambda found, k: torch.cat([found[..., : k - 1], 0 * found[..., :1]], -1),
    ),
    (
        "with the one behind it in place of the last",
        "the last of the k largest is the one behind it, the (k + 1)-th: one is passed over",
        lambda found, k: torch.cat([found[..., : k - 1], found[..., k:]], -1),
    ),
    (
        "without the largest",
        "the largest is passed over: the k behind it are chosen (off by one)",
        lambda found, k: found[..., 1:],
    ),
)


def changed_choices(step: ReferenceStep) -> Iterator[ChangedStep]:
    """The changes of a topk along the last axis."""
    if step.name != "topk":
        return
    for words, mistake, taken in CHOICES:

        def instead(func: Any, args: tuple[Any, ...], kwargs: Any, taken: Taken = taken) -> Any:
            right = func(*args, **kwargs)
            k, extent = right.values.shape[-1], args[0].shape[-1]
            if extent <= k or right.values.shape[:-1] != args[0].shape[:-1]:
                raise ValueError("all are chosen, or along another axis")
            more = torch.topk(args[0], k + 1, -1)
            return type(right)((taken(more.values, k), taken(more.indices, k)))

        yield change(step, f"{words} in {step.words}", instead, 1.01, mistake)

    def reversed_values(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        right = func(*args, **kwargs)
        return type(right)((right.values.flip(-1), right.indices))

    yield change(
        step,
        f"with the values in reverse order in {step.words}",
        reversed_values,
        1.0,
        "the values of the k largest are exchanged: each stands at the index of another",
    )
