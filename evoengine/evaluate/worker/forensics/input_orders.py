"""Inputs and outputs in another order along an axis that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch

from evoengine.evaluate.worker.forensics.changed_input import (
    Change,
    ChangedInputs,
    each_input,
    input_axes,
)
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.records import DiagnosisKind
from evoengine.task.schema import Task

FEW = (2, 3, 4, 8, 16)  # members of a group, or groups
PARTS = (64, 32, 16)
LEAST = 0.9  # wrong elements that another order must explain: a part of them it does by chance
LARGEST = 1 << 20  # elements of an input that is put in another order
Axes = Mapping[str, tuple[int, ...]]


def reversed_walks(task: Task, inputs: Tensors) -> Iterator[ChangedInputs]:
    """All that has an axis in the other order: what walks along it begins at the other end."""
    outputs = {name: tuple(spec.shape) for name, spec in task.outputs.items()}
    shapes = {name: input_axes(task, name) for name in task.inputs}
    largest = max(inputs, key=lambda name: inputs[name].numel(), default="")
    for axis in dict.fromkeys(one for shape in outputs.values() for one in shape):
        given, made = _axes_of(shapes, axis), _axes_of(outputs, axis)
        if largest in given and not axis.isdigit():
            yield ChangedInputs(
                DiagnosisKind.changed_input,
                f"everything in reverse order along {axis}",
                change=_flipping(given),
                after=_flipping(made),
                least=LEAST,
                mistake=f"the direction is wrong: what walks along {axis} runs in reverse, from the"
                " other end",
            )


def regrouped(
    task: Task, name: str, value: torch.Tensor, tiles: Sequence[int]
) -> Iterator[ChangedInputs]:
    """An axis of two parts, such as groups and their members, read as if they lay the other way
    round: neighbours in place of halves, members in turns in place of in a row.
    """
    if value.numel() > LARGEST:
        return
    for axis, formula in enumerate(input_axes(task, name)):
        extent = value.shape[axis]
        outputs = {key: tuple(spec.shape) for key, spec in task.outputs.items()}
        # rotary embeddings turn a part of a head alone
        parts_turned = (extent, extent // 2, extent // 4, *PARTS, *tiles)
        for part in dict.fromkeys(one for one in parts_turned if 4 <= one <= extent):
            if axis == value.dim() - 1:
                yield from _paired(name, axis, formula, part, _axes_of(outputs, formula))
        for size in dict.fromkeys(
            one for few in FEW if extent % few == 0 and extent > few for one in (few, extent // few)
        ):
            parts = extent // size
            yield ChangedInputs(
                DiagnosisKind.changed_input,
                f"{name} read as [{parts}, {size}] along {formula}, in turns, in place of"
                f" [{size}, {parts}]",
                change=each_input((name,), _turning(axis, size, extent)),
                least=LEAST,
                mistake=_split(name, formula, parts, size),
            )
        for side in (2, 3, 4):
            if extent % (side * side) == 0:
                yield ChangedInputs(
                    DiagnosisKind.changed_input,
                    f"{name} with rows and columns of every {side}x{side} places along {formula}"
                    " exchanged",
                    change=each_input((name,), _transposing(axis, side)),
                    least=LEAST,
                    mistake=f"in the index along {formula} of {name} the row and the column of a"
                    f" {side}x{side} block are swapped (transposed)",
                )


def _split(name: str, formula: str, parts: int, size: int) -> str:
    """That [size, parts] along an axis are read as [parts, size]."""
    pairs = "neighbouring elements (even and odd, interleaved pairs)"
    halves = "elements i and i + half (the two halves)"
    if size == 2:
        return f"{name} is read in the wrong order along {formula}: {pairs} in place of {halves}"
    if parts == 2:
        return f"{name} is read in the wrong order along {formula}: {halves} in place of {pairs}"
    return (
        f"the index along {formula} of {name} is split the wrong way round, as [{parts}, {size}] in"
        f" place of [{size}, {parts}]: what belongs together is read in turns (interleaved) where"
        " it lies in a row, or the reverse"
    )


def _paired(
    name: str, axis: int, formula: str, part: int, outputs: Axes
) -> Iterator[ChangedInputs]:
    """Pairs of neighbours in place of halves, read and written, along the first `part` places."""
    if part % 2 or not outputs:
        return
    pairs = f"neighbouring elements of {name} (even and odd, interleaved pairs)"
    halves = f"elements i and i + {part // 2} of {name} (the two halves)"
    for size, said in (
        (2, f"{pairs} along {formula} are paired where {halves} are meant"),
        (part // 2, f"{halves} along {formula} are paired where {pairs} are meant"),
    ):
        back = part // size

        def after(given: Tensors, back: int = back) -> Tensors:
            return {
                key: _turning(outputs[key][0], back, part)(value) if key in outputs else value
                for key, value in given.items()
            }

        yield ChangedInputs(
            DiagnosisKind.changed_input,
            f"the first {part} of {formula} in another order, in {name} and in what is written",
            change=each_input((name,), _turning(axis, size, part)),
            after=after,
            least=LEAST,
            mistake=said,
        )


def _turning(axis: int, size: int, part: int) -> Change:
    """The first `part` places of an axis: the first of every `size`, then the second, and so on."""

    def change(value: torch.Tensor) -> torch.Tensor:
        first, rest = (
            value.narrow(axis, 0, part),
            value.narrow(axis, part, _rest(value, axis, part)),
        )
        turned = first.unflatten(axis, (part // size, size)).transpose(axis, axis + 1)
        return torch.cat([turned.flatten(axis, axis + 1), rest], axis)

    return change


def _rest(value: torch.Tensor, axis: int, part: int) -> int:
    return value.shape[axis] - part


def _transposing(axis: int, side: int) -> Change:
    def change(value: torch.Tensor) -> torch.Tensor:
        blocks: torch.Tensor = value.unflatten(axis, (-1, side, side))
        return blocks.transpose(axis + 1, axis + 2).flatten(axis, axis + 2)

    return change


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
