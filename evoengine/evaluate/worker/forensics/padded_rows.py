"""Places behind the end of a dimension that take part, as the zeros that fill the last tile do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from evoengine.evaluate.worker.forensics.axis_words import axis_noun
from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs, input_axes
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task

WHOLE = (32, 64, 128, 16, 8, 256)  # sizes of tiles, besides those of the plan


def padded_rows(task: Task, inputs: Tensors, tiles: Sequence[int]) -> Iterator[ChangedInputs]:
    """Every dimension that no output has, filled up with zeros to whole tiles in all inputs."""
    written = {dim for spec in task.outputs.values() for dim in spec.shape}
    dims = dict.fromkeys(dim for name in inputs for dim in input_axes(task, name))
    for dim in dims:
        axes = {
            name: input_axes(task, name).index(dim)
            for name in inputs
            if input_axes(task, name).count(dim) == 1
        }
        if dim in written or not axes:
            continue
        first, axis = next(iter(axes.items()))
        seen = set[int]()
        for size in dict.fromkeys((*tiles, *WHOLE)):
            rest = -inputs[first].shape[axis] % size if size > 1 else 0
            if rest and rest not in seen:
                seen.add(rest)
                yield _padded(task, axes, dim, rest, size)


def _padded(task: Task, axes: Mapping[str, int], dim: str, rest: int, size: int) -> ChangedInputs:
    def change(given: Tensors) -> Tensors:
        found = dict(given)
        for name, axis in axes.items():
            shape = [*given[name].shape]
            shape[axis] = rest
            found[name] = torch.cat([given[name], given[name].new_zeros(shape)], axis)
        return found

    names = " and ".join(axes)
    noun = axis_noun(input_axes(task, next(iter(axes))), next(iter(axes.values())))
    return ChangedInputs(
        DiagnosisKind.changed_input,
        f"{names} filled up with zeros along {dim} to a multiple of {size}",
        change,
        # a wrong divisor, which is looked for later, gives the same where rows are averaged
        weight=0.995,
        mistake=f"what is behind the last {noun} of {names} takes part: the zeros that fill the"
        f" last tile of {size} (the padding) are not masked, there is no bound for them",
    )
