"""Operands that are broadcast, or taken by index, read at the index of another axis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from evoengine.evaluate.worker.forensics.axis_words import axis_noun
from evoengine.evaluate.worker.forensics.changed_step import BINARY, ChangedStep, Instead
from evoengine.evaluate.worker.forensics.reference_steps import (
    Place,
    ReferenceStep,
    SeenTensor,
    StepRecorder,
    steps_in_order,
)
from evoengine.records import DiagnosisKind

SCATTERS = {"index_add", "index_add_"}
# (coordinates of the result, axis, its extent) -> the index that is read there
Index = Callable[[Sequence[torch.Tensor], int, int], torch.Tensor]

# of an element in row t of n and column d of m
OTHER_PLACES: Sequence[tuple[str, Callable[..., torch.Tensor]]] = (
    (
        "at the position of the element counted over the rows, modulo",
        lambda t, d, n, m: t * m + d,
    ),
    ("at the element's column", lambda t, d, n, m: d + 0 * t),
    ("at the position of the element in the other layout", lambda t, d, n, m: d * n + t),
)


def changed_indices(recorder: StepRecorder, extents: Mapping[str, int]) -> Iterator[ChangedStep]:
    """Every operand that is broadcast, in all steps that take it, and all of one shape together.
    `extents` are the dimensions by name.
    """
    steps = {step.place: step for step in steps_in_order(recorder)}
    shapes = {one.place: one.shape for one in recorder.results}
    taken: dict[tuple[torch.Size, int], list[SeenTensor]] = {}
    for one in recorder.operands:
        result = shapes.get(one.place)
        if steps[one.place].name not in BINARY or result is None or one.shape == result:
            continue
        for axis in _own_axes(one.shape, result):
            taken.setdefault((one.shape, axis), []).append(one)
    for (_, axis), uses in taken.items():
        for group in _groups(uses):
            yield from _of_other_axes(group, axis, steps, shapes[group[0].place], extents)
    for step in steps.values():
        if step.name in SCATTERS:
            yield from _of_terms(step)


def _own_axes(shape: torch.Size, result: torch.Size) -> list[int]:
    """The axes of the result, counted from its end, of which the operand has an index."""
    dims = min(len(shape), len(result))
    return [axis for axis in range(-dims, 0) if shape[axis] == result[axis] > 1]


def _groups(uses: Sequence[SeenTensor]) -> Iterator[tuple[SeenTensor, ...]]:
    """All together, then each tensor by itself."""
    yield tuple(uses)
    own = list(dict.fromkeys(one.identity for one in uses))
    if len(own) > 1:
        for identity in own:
            yield tuple(one for one in uses if one.identity == identity)


def _of_other_axes(
    group: Sequence[SeenTensor],
    axis: int,
    steps: Mapping[Place, ReferenceStep],
    result: torch.Size,
    extents: Mapping[str, int],
) -> Iterator[ChangedStep]:
    names = [steps[one.place].operand(one.number) or "the operand" for one in group]
    named = " and ".join(dict.fromkeys(names))
    for words, index in _indices(result, axis, extents):
        changes = {
            place: _reading([one.number for one in group if one.place == place], axis, index)
            for place in dict.fromkeys(one.place for one in group)
        }
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with {named} read at {words} in {steps[group[0].place].words}",
            changes,
            1.0,
            mistake=f"{named} {'are' if ' and ' in named else 'is'} indexed wrongly: by"
            f" {words} in place of that of its own axis",
            of_whole=True,
        )


def _indices(
    result: torch.Size, axis: int, extents: Mapping[str, int]
) -> Iterator[tuple[str, Index]]:
    """The index of another axis, or of two axes counted as one."""
    dims = len(result)
    for other in range(-dims, 0):
        if other == axis:
            continue
        called = [name for name, extent in extents.items() if extent == result[other]]
        noun = axis_noun((called[0], "", ""), 0) if len(called) == 1 else "row or column"
        which = f"the index of the other axis {dims + other} (of {dims}, the number of its {noun})"
        yield which, lambda at, _a, extent, o=other: at[o] % extent  # type: ignore[misc]
        which = (
            f"the position counted over axes {dims + axis} and {dims + other}, as if they lay in"
            " the other order in memory"
        )
        yield (
            which,
            lambda at, a, extent, o=other: (at[a] * (int(at[o].max()) + 1) + at[o]) % extent,  # type: ignore[misc]
        )
        which = f"the position counted over axes {dims + other} and {dims + axis}, divided"
        yield (
            which,
            lambda at, a, extent, o=other: (  # type: ignore[misc]
                (at[o] * extent + at[a]) // (int(at[o].max()) + 1) % extent
            ),
        )


def _reading(numbers: Sequence[int], axis: int, index: Index) -> Instead:
    def instead(func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        right = func(*args, **kwargs)
        coordinates = [
            torch.arange(extent, device=right.device).view(-1, *(1,) * (right.dim() - 1 - number))
            for number, extent in enumerate(right.shape)
        ]
        given = list(args)
        for number in numbers:
            extent = args[number].shape[axis]
            places = index(coordinates, axis, extent).expand(right.shape)
            given[number] = args[number].expand(right.shape).gather(axis, places)
        return func(*given, **kwargs)

    return instead


def _of_terms(step: ReferenceStep) -> Iterator[ChangedStep]:
    """Rows that are added by index, whose elements take indices of their own."""
    named = step.operand(2) or "the index"
    for words, chosen in OTHER_PLACES:
        yield ChangedStep(
            DiagnosisKind.changed_step,
            f"with {named} read {words} ({step.words})",
            {step.place: _scattered(chosen)},
            1.0,
            mistake=f"{named} is read at the wrong index, {words}: elements of one row take the"
            " indices of other rows",
            of_whole=True,
        )


def _scattered(chosen: Callable[..., torch.Tensor]) -> Instead:
    def instead(_func: Any, args: tuple[Any, ...], _kwargs: Any) -> Any:
        total, axis, index, source = args[:4]
        if int(axis) != 0 or source.dim() != 2:
            raise ValueError("not by rows")
        rows, columns = source.shape
        row = torch.arange(rows, device=source.device).view(-1, 1)
        column = torch.arange(columns, device=source.device)
        places = index[chosen(row, column, rows, columns) % rows]
        return total.scatter_add(0, places.expand(source.shape).long(), source)

    return instead
