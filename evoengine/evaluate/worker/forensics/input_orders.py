"""Inputs and outputs in another order along an axis that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from evoengine.evaluate.worker.forensics.changed_input import ChangedInputs, input_axes
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task

Axes = Mapping[str, tuple[int, ...]]


def reversed_walks(task: Task) -> Iterator[ChangedInputs]:
    """All that has an axis in the other order: what walks along it begins at the other end."""
    outputs = {name: tuple(spec.shape) for name, spec in task.outputs.items()}
    inputs = {name: input_axes(task, name) for name in task.inputs}
    for axis in dict.fromkeys(one for shape in outputs.values() for one in shape):
        given, made = _axes_of(inputs, axis), _axes_of(outputs, axis)
        if given and not axis.isdigit():
            yield ChangedInputs(
                DiagnosisKind.changed_input,
                f"everything in reverse order along {axis}",
                change=_flipping(given),
                after=_flipping(made),
                mistake=f"the direction is wrong: what walks along {axis} runs in reverse, from the"
                " other end",
            )


def _axes_of(shapes: Mapping[str, tuple[str, ...]], axis: str) -> Axes:
    found = {
        name: tuple(at for at, one in enumerate(shape) if one == axis)
        for name, shape in shapes.items()
    }
    return {name: places for name, places in found.items() if places}


def _flipping(axes: Axes) -> Callable[[Tensors], Tensors]:
    return lambda given: {
        name: value.flip(axes[name]) if name in axes else value for name, value in given.items()
    }
