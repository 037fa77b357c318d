"""The end or the beginning of inputs left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from evoengine.evaluate.worker.forensics.axis_words import amount, axis_noun
from evoengine.evaluate.worker.forensics.changed_input import (
    Change,
    ChangedInputs,
    ends_of,
    input_axes,
    one_input,
)
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task


def missing_ends(
    task: Task, inputs: Tensors, name: str, tiles: Sequence[int]
) -> Iterator[ChangedInputs]:
    """The end or the beginning of an axis of an input left out: as if zero."""
    value = inputs[name]
    if not value.is_floating_point():
        return
    for axis, dim in enumerate(input_axes(task, name)):
        for count in ends_of(value.shape[axis], tiles):
            what = f"the last {count}" if count > 1 else "the last one"
            words = f"{what} along {dim} of {name} left out"
            mistake = f"{_part('last', task, name, axis, count)} of {name} left out"
            yield one_input(name, words, _zeroed(axis, -count), 1.0, mistake)
        for count in ends_of(value.shape[axis], tiles)[:2]:
            what = f"the first {count}" if count > 1 else "the first one"
            words = f"{what} along {dim} of {name} left out"
            mistake = f"{_part('first', task, name, axis, count)} of {name} left out"
            yield one_input(name, words, _zeroed(axis, count), 0.99, mistake)


def _part(end: str, task: Task, name: str, axis: int, count: int) -> str:
    """`the last 3 rows`, `the last row`."""
    noun = axis_noun(input_axes(task, name), axis)
    return f"the {end} {amount(count, noun) if count > 1 else noun}"


def _zeroed(axis: int, count: int) -> Change:
    def change(value: torch.Tensor) -> torch.Tensor:
        made = value.clone()
        start = 0 if count > 0 else value.shape[axis] + count
        made.narrow(axis, start, abs(count)).zero_()
        return made

    return change


def shortened(task: Task, inputs: Tensors, tiles: Sequence[int]) -> Iterator[ChangedInputs]:
    """A part of a dimension left out in several inputs at once, as of keys and values."""
    dims = dict.fromkeys(dim for name in inputs for dim in input_axes(task, name))
    for dim in dims:
        holders = [name for name in inputs if input_axes(task, name).count(dim) == 1]
        if len(holders) < 2:
            continue
        axis = {name: input_axes(task, name).index(dim) for name in holders}
        extent = inputs[holders[0]].shape[axis[holders[0]]]
        pairs = [
            (first, second)
            for place, first in enumerate(holders)
            for second in holders[place + 1 :]
        ]
        for pair in reversed(pairs):
            for count in ends_of(extent, tiles)[:8]:
                what = f"the last {count}" if count > 1 else "the last one"
                yield _short(pair, axis, f"{what} along {dim}", 0, count)
            for count in ends_of(extent, tiles)[:3]:
                what = f"the first {count}" if count > 1 else "the first one"
                yield _short(pair, axis, f"{what} along {dim}", count, 0)


def _short(
    pair: tuple[str, str], axis: Mapping[str, int], what: str, before: int, behind: int
) -> ChangedInputs:
    """Both inputs without so many indices at the beginning and at the end."""

    def change(given: Tensors) -> Tensors:
        found = dict(given)
        for name in pair:
            kept = given[name].shape[axis[name]] - before - behind
            if kept > 0:
                found[name] = given[name].narrow(axis[name], before, kept)
        return found

    words = f"{what} of {' and '.join(pair)} left out"
    return ChangedInputs(DiagnosisKind.changed_input, words, cut_change=change)
