"""Values taken by index (the score of a target) that a kernel finds in some of its tiles only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    Instead,
)
from evoengine.evaluate.worker.forensics.reference_steps import (
    Place,
    ReferenceStep,
    StepRecorder,
)
from evoengine.records import DiagnosisKind

SIZES = (32, 64, 128, 256, 512, 16, 1024)
# (index, extent of the axis) -> whether the kernel finds it
Found = Callable[[torch.Tensor, int], torch.Tensor]


def changed_gathers(
    steps: Sequence[ReferenceStep], recorder: StepRecorder, tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """The changes of every gather. What is not found stays zero, before or after the maximum is
    subtracted from it.
    """
    by_place = {step.place: step for step in steps}
    for step in steps:
        if step.name != "gather":
            continue
        feeds = recorder.feeds.get(step.place, ())
        before = by_place.get(feeds[0]) if feeds and feeds[0] is not None else None
        named = step.operand(2) or "the index"
        for size in dict.fromkeys((*tiles[:MOST_TILES], *SIZES)):
            for words, found in _choices(size):
                said = f"where an index {words} gives 0 in {step.words}"
                mistake = (
                    f"what {named} chooses is not found where it {words}: {step.result} stays 0"
                    " there"
                )
                yield _change({step.place: _zeros(found)}, said, mistake)
                if before is not None and before.name == "sub":
                    held: list[Any] = []
                    changes = {before.place: _holding(held), step.place: _less(found, held)}
                    yield _change(changes, f"{said}, before {before.operand(1)} is taken", mistake)
            yield _change(
                {step.place: _modulo(size)},
                f"with the index modulo {size} in {step.words}",
                f"{named} is read as the index in its tile of {size}, without the offset of the"
                f" tile (modulo {size})",
            )


def _choices(size: int) -> Iterator[tuple[str, Found]]:
    yield f"is not in the first tile (chunk) of {size}", lambda at, n: at < size
    yield (
        f"is in the last, cut-off tile beyond a multiple of {size} (the remainder)",
        lambda at, n: at < n // size * size,
    )
    yield (
        f"is not in the last tile (chunk) of {size}: every tile overwrites what was found before",
        lambda at, n: at >= (n - 1) // size * size,
    )


def _change(changes: dict[Place, Instead], words: str, mistake: str) -> ChangedStep:
    return ChangedStep(DiagnosisKind.changed_step, words, changes, 1.0, mistake=mistake)


def _mask(found: Found, args: tuple[Any, ...]) -> torch.Tensor:
    value, axis, index = args[:3]
    mask = found(index, value.shape[axis])
    if bool(mask.all()):
        raise ValueError("no change")
    return mask


def _zeros(found: Found) -> Instead:
    return lambda func, args, kwargs: func(*args, **kwargs) * _mask(found, args)


def _holding(held: list[Any]) -> Instead:
    def hold(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        held[:] = [args[1]]
        return func(*args, **kwargs)

    return hold


def _less(found: Found, held: Sequence[Any]) -> Instead:
    """The result, and where nothing is found 0 less what was subtracted."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        right = func(*args, **kwargs)
        return torch.where(_mask(found, args), right, -torch.as_tensor(held[0]).expand_as(right))

    return instead


def _modulo(size: int) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        value, axis, index = args[:3]
        if value.shape[axis] <= size:
            raise ValueError("one tile")
        return func(value, axis, index % size, **kwargs)

    return instead
