"""Sums, means, variances, maxima: of a part of their terms, of another row, divided wrongly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.axis_words import axis_noun
from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    REDUCTIONS,
    ChangedStep,
    Instead,
    change,
    is_last_axis,
    reduced_axes,
)
from evoengine.evaluate.worker.forensics.reference_steps import Place, ReferenceStep
from evoengine.evaluate.worker.forensics.summed_terms import Times, term_choices
from evoengine.records import DiagnosisKind

ADDED = {"mean", "sum", "norm", "vector_norm", "logsumexp"}
EXTREMES = {"amax", "amin", "max", "min"}
REPEATS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
PART_WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
Remade = Callable[[torch.Tensor], torch.Tensor]


def divided_wrongly(step: ReferenceStep) -> Iterator[ChangedStep]:
    """A reduction with another divisor, or none, or another start."""
    if step.name not in REDUCTIONS:
        return
    name = step.result
    if step.name == "mean":
        yield change(
            step,
            f"without dividing by the count in {step.words}",
            lambda f, a, k: f(*a, **k) * count(a, k),
            1.03,
            f"{name} is not divided by the number of elements: a sum in place of a mean",
        )
    if step.name in ("mean", "var"):
        yield change(
            step,
            f"dividing by the count minus 1 in {step.words}",
            lambda f, a, k: f(*a, **k) * (count(a, k) / max(1, count(a, k) - 1)),
            1.03,
            f"{name} divides by N - 1 in place of N (sample variance, unbiased)",
        )
    if step.name in ("var", "std"):
        power = 1.0 if step.name == "var" else 0.5
        yield change(
            step,
            f"dividing by the count in {step.words}",
            lambda f, a, k: f(*a, **k) * (max(1, count(a, k) - 1) / count(a, k)) ** power,
            1.03,
            f"{name} divides by N in place of N - 1",
        )
    if step.name == "sum":
        yield change(
            step,
            f"dividing by the count in {step.words}",
            lambda f, a, k: f(*a, **k) / count(a, k),
            mistake=f"{name} is divided by the number of elements: a mean in place of a sum",
        )
    if step.name in ADDED | {"amax"}:
        yield change(
            step,
            f"with 0 in place of {step.words}",
            lambda f, a, k: torch.zeros_like(f(*a, **k)),
            mistake=f"{name} is missing, taken as 0 (a term that is not added)",
        )
    if step.name in EXTREMES:
        bound = torch.clamp_min if step.name.endswith("max") else torch.clamp_max
        yield change(
            step,
            f"with {step.words} begun at 0",
            of_tensor(lambda found: bound(found, 0.0)),
            1.02,
            "the maximum begins at 0 in place of minus infinity"
            if step.name.endswith("max")
            else "the minimum begins at 0 in place of infinity",
        )


def count(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """The number of elements that a reduction reduces to one."""
    return math.prod(args[0].shape[axis] for axis in reduced_axes(args, kwargs))


def of_some_terms(
    steps: Sequence[ReferenceStep], tiles: Sequence[int], noun: str = "element"
) -> Iterator[ChangedStep]:
    """Reductions that leave out some terms, or add some twice."""
    for group in groups_of(steps):
        names = names_of(group)
        for choice in term_choices(tiles[:MOST_TILES], noun):
            yield together(
                group,
                f"where the sum of {names} {choice.words}",
                _chosen_terms(choice.times),
                f"the sum of {names} {choice.words}",
                choice.weight,
            )
    for step in steps:
        if step.name not in ("mean", "sum"):
            continue
        for times in REPEATS:
            yield change(
                step,
                f"with {step.words} counted {times} times",
                lambda f, a, k, t=times: f(*a, **k) * t,
                0.99,
                f"{step.result} is {times} times too large: the sum is counted {times} times, as"
                " by every thread or warp",
            )


def up_to_own_part(
    steps: Sequence[ReferenceStep], extents: Mapping[str, int]
) -> Iterator[ChangedStep]:
    """A sum over a row that each part of it, such as a head, has only up to its own end."""
    for step in steps:
        if step.name not in ("mean", "sum"):
            continue
        for name, extent in extents.items():
            for before, which in ((True, "earlier"), (False, "later")):
                yield change(
                    step,
                    f"where each of {name} parts of a row is summed with the {which} ones only in"
                    f" {step.words}",
                    _running_parts(extent, before),
                    1.0,
                    f"the sum of {step.result} is taken {'up to' if before else 'from'} the own"
                    f" part ({axis_noun((name, '', ''), 0)}) only, the"
                    f" {'later' if before else 'earlier'} ones are missing",
                )


def _running_parts(parts: int, before: bool) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found, value = func(*args, **kwargs), args[0]
        extent = value.shape[-1]
        is_kept = found.shape == (*value.shape[:-1], 1)
        if not is_kept or parts < 2 or extent % parts or extent == parts:
            raise ValueError("not a sum over a row in parts")
        own = value.unflatten(-1, (parts, -1)).sum(-1)
        if func.__name__ == "mean":
            own = own / extent
        running = own.cumsum(-1) if before else own.flip(-1).cumsum(-1).flip(-1)
        return running.repeat_interleave(extent // parts, dim=-1)

    return instead


def centred_by_parts(steps: Sequence[ReferenceStep]) -> Iterator[ChangedStep]:
    """A spread taken around the mean of a part of a row: parts merged without their means."""
    for step in steps:
        if step.name != "sub":
            continue
        for width in PART_WIDTHS:
            for parts in (0, 2, 4, 8, 32):  # 0: contiguous parts of so many
                how = (
                    f"every {width} elements"
                    if not parts
                    else f"places p with p // {width} % {parts} the same"
                )
                yield change(
                    step,
                    f"with the mean of parts of a row ({how}) in {step.words}",
                    _own_means(width, parts),
                    1.0,
                    f"{step.source.variable or 'the variance'} of the parts of a row is merged"
                    " without the spread of their means (their distance, delta)",
                )


def groups_of(steps: Sequence[ReferenceStep]) -> Iterator[tuple[ReferenceStep, ...]]:
    """All reductions together where there are several, then each by itself."""
    found = tuple(step for step in steps if step.name in ADDED | EXTREMES | {"var", "std"})
    if len(found) > 1:
        yield found
    for step in found:
        yield (step,)


def names_of(group: Sequence[ReferenceStep]) -> str:
    names = [step.result for step in group]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def all_and_each(steps: Sequence[ReferenceStep]) -> list[tuple[ReferenceStep, ...]]:
    """All of `steps`, as where they share a function, and then each by itself."""
    return [tuple(steps)] * (len(steps) > 1) + [(step,) for step in steps]


def together(
    group: Sequence[ReferenceStep], words: str, instead: Instead, mistake: str, weight: float = 1.0
) -> ChangedStep:
    changes: dict[Place, Instead] = {step.place: instead for step in group}
    where = f" ({group[0].words})" if len(group) == 1 else ""
    kind = DiagnosisKind.changed_step
    return ChangedStep(kind, f"{words}{where}", changes, weight, mistake=mistake)


def of_tensor(remade: Remade) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        if not isinstance(found, torch.Tensor) or found.dim() == 0:
            raise ValueError("not a reduction to one tensor of rows")
        return remade(found)

    return instead


def _chosen_terms(times: Times) -> Instead:
    """A reduction that takes each term so many times, counted over all axes that it reduces."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        value, axes = args[0], sorted(reduced_axes(args, kwargs))
        extent = count(args, kwargs)
        at = torch.arange(extent, device=value.device)
        taken = times(at, torch.tensor(extent, device=value.device)).to(torch.float64)
        if bool((taken == 1).all()):
            raise ValueError("no change")
        view = [value.shape[axis] if axis in axes else 1 for axis in range(value.dim())]
        taken = taken.view(view)
        name = getattr(func, "__name__", "")
        if name in EXTREMES | {"logsumexp"}:
            empty = math.inf if name.endswith("min") else -math.inf
            return func(value.masked_fill(taken == 0, empty), *args[1:], **kwargs)
        if name in ADDED:
            return func(value * taken, *args[1:], **kwargs)
        if not is_last_axis(args, kwargs):
            raise ValueError("not along the last axis")
        kept = value.index_select(-1, taken.flatten().nonzero().flatten())
        return func(kept, *args[1:], **kwargs)  # var, std: of what is left

    return instead


def _own_means(width: int, parts: int) -> Instead:
    """`value - mean` with a mean of its own for each part of the last axis."""

    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        value, mean = args[0], args[1]
        extent = value.shape[-1]
        if not isinstance(mean, torch.Tensor) or mean.shape[-1] != 1 or extent < 2 * width:
            raise ValueError("no difference from a mean")
        at = torch.arange(extent, device=value.device)
        group = at // width % parts if parts else at // width
        number = int(group.max()) + 1
        if number < 2:
            raise ValueError("one part")
        sums = value.new_zeros(*value.shape[:-1], number).index_add_(-1, group, value)
        counts = torch.bincount(group, minlength=number)
        return value - (sums / counts).index_select(-1, group)

    return instead
