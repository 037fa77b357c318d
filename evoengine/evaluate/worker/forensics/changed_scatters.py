"""Sums by index (index_add, scatter_add) that leave out terms of a group, or add some twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.changed_step import (
    MOST_TILES,
    ChangedStep,
    Instead,
    change,
)
from evoengine.evaluate.worker.forensics.reference_steps import ReferenceStep, StepRecorder
from evoengine.evaluate.worker.forensics.summed_terms import Times, term_choices

MOST_LETTERS = 2  # of a name that says nothing
SCATTERS = {"index_add", "index_add_", "scatter_add", "scatter_add_"}


def changed_scatters(step: ReferenceStep, noun: str, tiles: Sequence[int]) -> Iterator[ChangedStep]:
    """The changes of a step that adds by index; what one index collects is called `noun`."""
    if step.name not in SCATTERS:
        return
    yield change(
        step,
        f"divided by the number of rows of each {noun} ({step.words})",
        _averaged,
        1.0,
        "each sum is divided by the number of its rows: a mean in place of a sum",
    )
    for which, place in (("last", lambda at, n: at == n - 1), ("first", lambda at, n: at == 0)):
        yield change(
            step,
            f"with the {which} row of each {noun} alone ({step.words})",
            _with_terms(place),
            1.02,
            f"rows are overwritten in place of being added: of the rows of one index only the"
            f" {which} one is kept",
        )
    for choice in term_choices(tiles[:MOST_TILES], "row"):
        yield change(
            step,
            f"where the sum of each {noun} {choice.words} ({step.words})",
            _with_terms(choice.times),
            choice.weight,
            f"the sum of each {noun} (the rows that one index collects) {choice.words}",
        )


def group_noun(recorder: StepRecorder, step: ReferenceStep, extents: Mapping[str, int]) -> str:
    """What the rows of one index are called: by the dimension that the sums have, "bag" of BAGS."""
    if step.name not in SCATTERS:
        return "group"
    shapes = [one.shape for one in recorder.operands if (one.place, one.number) == (step.place, 0)]
    names = [
        name
        for shape in shapes
        for name, extent in extents.items()
        if len(shape) and extent == shape[0] and len(name) > MOST_LETTERS
    ]
    return names[0].lower().removesuffix("s") if len(names) == 1 else "group"


def _groups(args: tuple[Any, ...]) -> tuple[int, torch.Tensor, torch.Tensor]:
    """The axis, the group of each term, and the number of terms of each group."""
    total, axis, index = args[0], int(args[1]), args[2]
    if index.dim() != 1:  # scatter: groups must be those of the first of the other axes
        index = index.select(1 - axis, 0) if index.dim() == 2 else index.flatten()
    return axis, index, torch.bincount(index, minlength=total.shape[axis])


def _with_terms(times: Times) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        axis, index, counts = _groups(args)
        taken = times(_rank(index, counts), counts[index]).to(torch.float64)
        if bool((taken == 1).all()):
            raise ValueError("no change")
        shape = [1] * args[3].dim()
        shape[axis] = -1
        return func(*args[:3], args[3] * taken.view(shape), *args[4:], **kwargs)

    return instead


def _rank(index: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """The place of each term in its group, in the order of the terms."""
    order = index.argsort(stable=True)
    starts = counts.cumsum(0) - counts
    rank = torch.empty_like(index)
    rank[order] = torch.arange(len(index), device=index.device) - starts[index[order]]
    return rank


def _averaged(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    axis, _, counts = _groups(args)
    shape = [1] * args[0].dim()
    shape[axis] = -1
    return func(*args, **kwargs) / counts.clamp_min(1).view(shape)
