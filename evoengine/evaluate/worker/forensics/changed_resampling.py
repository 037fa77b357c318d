"""Linear interpolation with the places of another convention, along all axes or one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import ChangedStep, change
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep

LINEAR = ("linear", "bilinear")
AXES = ("columns", "rows")  # from the last one
# The place in an input of `given` elements from which element i of `made` is interpolated.
Places = Callable[[torch.Tensor, int, int], torch.Tensor]


@dataclass(frozen=True)
class Convention:
    """Where the elements of an axis lie, and what a kernel has done that takes it by mistake."""

    words: str
    mistake: str
    places: Places


CONVENTIONS = (
    Convention(
        "corners aligned",
        "the corners are aligned (align_corners): the ratio is (size - 1) / (new size - 1)",
        lambda i, given, made: i * (given - 1) / max(1, made - 1),
    ),
    Convention(
        "the ratio of aligned corners",
        "the ratio is that of aligned corners, (size - 1) / (new size - 1)",
        lambda i, given, made: (i + 0.5) * (given - 1) / max(1, made - 1) - 0.5,
    ),
    Convention(
        "no half pixel",
        "the half pixel is missing: i * ratio in place of (i + 0.5) * ratio - 0.5",
        lambda i, given, made: i * given / made,
    ),
    Convention(
        "half a pixel added alone",
        "the half pixel is not subtracted: (i + 0.5) * ratio in place of (i + 0.5) * ratio - 0.5",
        lambda i, given, made: (i + 0.5) * given / made,
    ),
    Convention(
        "centres of pixels",
        "the corners are not aligned: (i + 0.5) * ratio - 0.5 with the ratio size / new size",
        lambda i, given, made: (i + 0.5) * given / made - 0.5,
    ),
)


def changed_resampling(step: ReferenceStep) -> Iterator[ChangedStep]:
    """The changes of a step that interpolates; those that do what it does explain nothing."""
    if step.name != "interpolate":
        return
    for convention in CONVENTIONS:
        yield change(
            step,
            f"with {convention.words} in {step.words}",
            _interpolated(dict.fromkeys(AXES, convention.places)),
            1.02,
            convention.mistake,
        )
        for axis in AXES:
            yield change(
                step,
                f"with {convention.words} of the {axis} in {step.words}",
                _interpolated({axis: convention.places}),
                1.01,
                f"along the {axis}, {convention.mistake}",
            )
    yield change(
        step,
        f"with the nearest element alone in {step.words}",
        _nearest,
        1.0,
        "the nearest element is taken, nothing is interpolated",
    )


def _interpolated(places: Mapping[str, Places]) -> Callable[..., Any]:
    """What stands in place of the step, with other places along some axes."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        right = func(*args, **kwargs)
        if kwargs.get("mode") not in LINEAR or kwargs.get("antialias"):
            return right
        own = CONVENTIONS[0 if kwargs.get("align_corners") else -1].places
        value = args[0]
        for axis, name in zip((-1, -2)[: value.dim() - 2], AXES, strict=False):
            value = _along(value, axis, right.shape[axis], places.get(name, own))
        return value

    return instead


def _along(value: torch.Tensor, axis: int, made: int, places: Places) -> torch.Tensor:
    given = value.shape[axis]
    at = places(torch.arange(made, device=value.device, dtype=torch.float64), given, made)
    at = at.clamp(0, given - 1)
    low = at.floor().long()
    shape = [1] * value.dim()
    shape[axis] = made
    weight = (at - low).view(shape).to(value.dtype)
    above = value.index_select(axis, (low + 1).clamp(max=given - 1))
    return value.index_select(axis, low) * (1 - weight) + above * weight


def _nearest(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    others = {key: value for key, value in kwargs.items() if key not in ("mode", "align_corners")}
    return func(*args, **others, mode="nearest")
