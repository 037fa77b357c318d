"""Sums of exponentials outside of a softmax whose parts are not brought to one maximum.

A logarithm of a sum of exponentials, a log-softmax or a cross entropy is computed as a softmax is:
in tiles with a running maximum, or by lanes and splits with maxima of their own. What is divided by
in a softmax is here what a logarithm is taken of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    Instead,
    change,
    reduced_axes,
)
from evoengine.evaluate.worker.forensics.reference_steps import (
    Place,
    ReferenceStep,
    StepRecorder,
)
from evoengine.evaluate.worker.forensics.softmax_weights import (
    Parting,
    in_a_row,
    in_turn,
    of_size,
)

TILES = (32, 64, 128, 256, 512, 1024, 1)
LANES = (32, 64, 128, 256, 4, 8)
# exponentials (rows, elements) in units of the row's largest -> their wrong sum
Summed = Callable[[torch.Tensor], torch.Tensor]


def unscaled_sums(
    steps: Sequence[ReferenceStep], recorder: StepRecorder, tiles: Sequence[int]
) -> Iterator[ChangedStep]:
    """The changes of every sum of exponentials that belongs to no softmax."""
    by_place: Mapping[Place, ReferenceStep] = {step.place: step for step in steps}
    for step in steps:
        feeds = recorder.feeds.get(step.place, ())
        maker = by_place.get(feeds[0]) if feeds and feeds[0] is not None else None
        is_sum = step.name == "sum" and maker is not None and maker.name == "exp"
        if is_sum and step.function != "softmax":
            yield from _of(step, tiles)


def _of(step: ReferenceStep, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    for tile in dict.fromkeys((*tiles, *TILES)):
        yield change(
            step,
            f"in tiles of {tile} whose running sum is not rescaled in {step.words}",
            _summed(lambda e, t=tile: _online(e, t)),  # type: ignore[misc]
            1.0,
            "the running sum of exponentials is not rescaled when the running maximum grows",
        )
    partings: list[tuple[str, Parting]] = [
        (f"{parts} splits", in_a_row(parts)) for parts in (2, 4, 8)
    ]
    partings += [(f"splits of {size}", of_size(size)) for size in tiles[:MOST_TILES]]
    for lanes in dict.fromkeys((*LANES, *tiles[:MOST_TILES])):
        for width in (1, 4):
            partings.append((f"{lanes} lanes of {width} in turn", in_turn(width, lanes)))
    for named, parting in partings:
        yield change(
            step,
            f"in {named}, each with its own maximum, added without rescaling in {step.words}",
            _summed(lambda e, p=parting: _own_maxima(e, p)),  # type: ignore[misc]
            1.0,
            "the partial sums of exponentials are merged without rescaling each to the common"
            " maximum",
        )


def _summed(summed: Summed) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        right = func(*args, **kwargs)
        axes = reduced_axes(args, kwargs)
        if len(axes) != 1:
            raise ValueError("several axes")
        power = args[0].movedim(axes[0], -1)
        largest = power.amax(-1, keepdim=True)
        made: torch.Tensor = summed(power / largest) * largest.squeeze(-1)
        return made.reshape(right.shape)

    return instead


def _online(power: torch.Tensor, tile: int) -> torch.Tensor:
    """Each tile in units of what was largest then."""
    extent = power.shape[-1]
    if extent <= tile:
        raise ValueError("one tile")
    running = torch.stack([one.amax(-1) for one in power.split(tile, -1)], -1).cummax(-1).values
    then = running.repeat_interleave(tile, -1)[..., :extent]
    return (power / then).sum(-1)


def _own_maxima(power: torch.Tensor, parting: Parting) -> torch.Tensor:
    part = parting(power.shape[-1])
    number = int(part.max()) + 1
    if number < 2:
        raise ValueError("one part")
    total = torch.zeros_like(power[..., 0])
    for one in range(number):
        own = power[..., (part == one).to(power.device)]
        total = total + own.sum(-1) / own.amax(-1)
    return total
