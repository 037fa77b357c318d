"""Stand-ins for kernels: outputs that are plainly wrong, and that every gate must refuse.

A gross one (zeros, a copied input) must be refused by the bound of elements and by that of the
whole output, each by itself: a bound that lets it through means nothing. For the others any bound
will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch

from evoengine.evaluate.worker.audit.audited_set import AuditedSet
from evoengine.evaluate.worker.audit.precision_below import (
    PRECISION_NAMES,
    bits_below,
    rounded_inputs,
)
from evoengine.evaluate.worker.gate import Gate
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.evaluate.worker.set_distributions import DRAWING_FUNCTIONS
from evoengine.evaluate.worker.slices import slice_elements, tiny_of
from evoengine.task.draw import Draw
from evoengine.task.schema import Input, Task, shape_of

# Outputs by name: of those to which it applies, float64.
MakeOutputs = Callable[[AuditedSet], Tensors]
# Whether it applies to an output of a case, by their shapes and flags.
Applies = Callable[[str, str], bool]
GATES_OFF = 10.0  # how far one element is off, in gates
PART_OF_CHANGE = 0.9  # of what a kernel should change in place: too little, and far from nothing


@dataclass(frozen=True)
class StandIn:
    """What stands in for a kernel.

    `applies` is asked with the names of a case and an output. `gross` says whether each bound must
    refuse it by itself. `may_be_right` says whether it is no fault of the task that its outputs are
    exactly those of the reference: a symmetric output, transposed. `must_differ` says whether one
    output at least must differ: an input that changes none has no influence. With `distribution`,
    it is tried on this one alone; without, one that refuses it is enough.
    """

    name: str
    make: MakeOutputs
    applies: Applies
    gross: bool = False
    may_be_right: bool = False
    must_differ: bool = False
    distribution: str = ""


def stand_ins(task: Task, tier: str) -> Iterator[StandIn]:
    """All that are tried on `tier`."""
    shapes = Shapes(task)
    yield StandIn("zeros", _of_each(torch.zeros_like), _always, gross=True)
    for distribution in task.distributions:  # a kernel may look which one it is given
        zeros, name = _of_each(torch.zeros_like), f"zeros on {distribution}"
        yield StandIn(name, zeros, _always, may_be_right=True, distribution=distribution)
    yield StandIn("ones", _of_each(torch.ones_like), _always, gross=True)
    yield StandIn("the mean everywhere", _of_each(_mean), shapes.is_larger_than_one, gross=True)
    if any(spec.shape is not None for spec in task.inputs.values()):  # else all seeds are alike
        yield StandIn("the output of another seed", _of_another_seed, _always, gross=True)
    yield from _of_inputs(task, shapes)
    yield from _of_halves(task, shapes)
    yield from _of_beginnings(task)
    for axis in range(max(len(output.shape) for output in task.outputs.values())):
        mean = _of_each(partial(_mean_along, axis=axis))
        applies = partial(shapes.extends_along, axis)
        yield StandIn(f"the mean along axis {axis}", mean, applies, may_be_right=True)
    yield StandIn("transposed", _of_each(_transposed), shapes.is_matrix, may_be_right=True)
    yield StandIn("one row missing", _of_each(_without_a_row), shapes.has_rows)
    yield StandIn(f"one element off by {GATES_OFF:g} gates", _one_off(task, tier), _always)
    for name, kind in task.dims.items():
        if kind == "bool":
            applies = partial(_has_flag, task, name)
            yield StandIn(f"{name} left out", _without_flag(name), applies, may_be_right=True)
    bits = bits_below(task, tier)
    if bits is not None:
        rounded = f"inputs in {PRECISION_NAMES[bits]} precision"
        yield StandIn(rounded, _rounded(bits), _always, may_be_right=True)


def _of_inputs(task: Task, shapes: Shapes) -> Iterator[StandIn]:
    for name, spec in task.inputs.items():
        if spec.shape is not None:
            applies = partial(shapes.is_as_large_as, name)
            yield StandIn(f"a copy of {name}", _copy_of(name), applies, True, True)
            other = f"the output for {name} of another seed"
            yield StandIn(other, _with_another(name), _always, False, True, True)


def _of_halves(task: Task, shapes: Shapes) -> Iterator[StandIn]:
    """Half of an input stands for the whole where there are fewer outputs: a mean of many values
    hardly shows it.
    """
    for name, spec in task.inputs.items():
        if spec.shape is None or not _is_plain(spec):
            continue
        for axis in range(len(spec.shape)):
            applies = partial(shapes.is_reduced_along, axis, name)
            half = f"half of {name} along axis {axis}"
            yield StandIn(half, _with_half(name, axis), applies, may_be_right=True)


def _is_plain(spec: Input) -> bool:
    """Whether any values of its type may stand in a floating-point input."""
    if isinstance(spec.draw, str) or not getattr(torch, spec.dtype).is_floating_point:
        return False
    dist = (spec.draw or Draw()).dist
    return dist is None or dist == "uniform" or dist in DRAWING_FUNCTIONS


def _of_beginnings(task: Task) -> Iterator[StandIn]:
    """What a kernel leaves behind that writes nothing, or too little of a change in place."""
    for name, spec in task.outputs.items():
        applies = partial(_is_output, name)
        if spec.inout:
            part = f"{PART_OF_CHANGE:g} of the change in place"
            yield StandIn(part, _changed_in_part(name), applies, may_be_right=True)
        elif isinstance(spec.init, float | int):
            value = float(spec.init)
            yield StandIn("left as it begins", _filled(name, value), applies, gross=True)


class Shapes:
    """The shapes of a task's tensors by case."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def is_larger_than_one(self, case: str, output: str) -> bool:
        """Whether the output has several elements."""
        return math.prod(self._of(case, output)) > 1

    def extends_along(self, axis: int, case: str, output: str) -> bool:
        """Whether the output has several elements along `axis`."""
        shape = self._of(case, output)
        return axis < len(shape) and shape[axis] > 1

    def is_reduced_along(self, axis: int, name: str, case: str, output: str) -> bool:
        """Whether input `name` has more elements than the output, and several along `axis`."""
        larger = math.prod(self._of(case, name)) > math.prod(self._of(case, output))
        return larger and self._of(case, name)[axis] > 1

    def is_matrix(self, case: str, output: str) -> bool:
        """Whether the output's last two extents are larger than 1."""
        shape = self._of(case, output)
        return len(shape) > 1 and min(shape[-2:]) > 1

    def has_rows(self, case: str, output: str) -> bool:
        """Whether the output has slices that are bounded on their own."""
        return slice_elements(self._of(case, output)) > 0

    def is_as_large_as(self, name: str, case: str, output: str) -> bool:
        """Whether input `name` has as many elements as the output."""
        return math.prod(self._of(case, name)) == math.prod(self._of(case, output))

    def _of(self, case: str, name: str) -> tuple[int, ...]:
        spec = self._task.outputs.get(name) or self._task.inputs[name]
        return shape_of(spec.shape or (), self._task.scope(case))


def _always(_case: str, _output: str) -> bool:
    return True


def _has_flag(task: Task, name: str, case: str, _output: str) -> bool:
    return bool(task.all_cases[case][name])


def _is_output(name: str, _case: str, output: str) -> bool:
    return output == name


def _of_each(change: Callable[[torch.Tensor], torch.Tensor]) -> MakeOutputs:
    """`change` applied to the reference of each output, whose infinities stay."""
    return lambda given: {
        name: _with_infinities(change(value.masked_fill(value.isinf(), 0)), value)
        for name, value in given.reference.items()
    }


def _with_infinities(made: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """`made` with the infinities of `reference`: a mask is easily known, and where they are missing
    any output is refused, whatever the bounds.
    """
    return torch.where(reference.isinf(), reference, made)


def _mean(value: torch.Tensor) -> torch.Tensor:
    return value.mean().expand_as(value)


def _mean_along(value: torch.Tensor, axis: int) -> torch.Tensor:
    axis = min(axis, value.dim() - 1)  # of a flatter output, to which it does not apply
    return value.mean(dim=axis, keepdim=True).expand_as(value)


def _transposed(value: torch.Tensor) -> torch.Tensor:
    flat = value if value.dim() > 1 else value.view(1, -1)
    return flat.transpose(-1, -2).reshape(value.shape)


def _without_a_row(value: torch.Tensor) -> torch.Tensor:
    """The largest row is left at zero: of the others one may be zero."""
    rows = value.reshape(-1, slice_elements(tuple(value.shape)) or value.numel()).clone()
    rows[rows.abs().sum(1).argmax(keepdim=True)] = 0
    return rows.view(value.shape)


def _of_another_seed(given: AuditedSet) -> Tensors:
    return {
        name: _with_infinities(value, given.reference[name])
        for name, value in given.other().reference.items()
    }


def _copy_of(name: str) -> MakeOutputs:
    def make(given: AuditedSet) -> Tensors:
        source = given.inputs[name].double()
        return {
            output: _with_infinities(source.reshape(value.shape), value)
            for output, value in given.reference.items()
            if value.numel() == source.numel()
        }

    return make


def _with_another(name: str) -> MakeOutputs:
    return lambda given: given.recompute({**given.inputs, name: given.other().inputs[name]}, {})


def _with_half(name: str, axis: int) -> MakeOutputs:
    """The outputs where the first half of an input takes the place of the second one, too."""

    def make(given: AuditedSet) -> Tensors:
        value = given.inputs[name]
        half = -(-value.shape[axis] // 2)
        first = value.narrow(axis, 0, half)
        twice = torch.cat([first, first], axis).narrow(axis, 0, value.shape[axis])
        return given.recompute({**given.inputs, name: twice.contiguous()}, {})

    return make


def _changed_in_part(name: str) -> MakeOutputs:
    def make(given: AuditedSet) -> Tensors:
        before, after = given.inputs[name].double(), given.reference[name]
        return {name: before.lerp(after, PART_OF_CHANGE)}

    return make


def _filled(name: str, value: float) -> MakeOutputs:
    return lambda given: {name: torch.full_like(given.reference[name], value)}


def _without_flag(name: str) -> MakeOutputs:
    return lambda given: given.recompute(given.inputs, {name: False})


def _rounded(bits: int) -> MakeOutputs:
    return lambda given: given.recompute(rounded_inputs(given.inputs, bits), {})


def _one_off(task: Task, tier: str) -> MakeOutputs:
    def make(given: AuditedSet) -> Tensors:
        gates = given.expected.gates[tier]
        return {
            name: _moved(value, gates[name], getattr(torch, task.outputs[name].dtype))
            for name, value in given.reference.items()
        }

    return make


def _moved(value: torch.Tensor, gate: Gate, dtype: torch.dtype) -> torch.Tensor:
    """One element in the middle is moved, so far that `dtype` can tell; an infinite one becomes
    zero.
    """
    moved = value.clone()
    flat, place = moved.view(-1), value.numel() // 2
    if not flat[place].isfinite():
        flat[place] = 0
        return moved
    # towards zero: away from it, a large value might leave the range of its dtype
    size = float(flat[place].abs())
    step = max(GATES_OFF * (gate.atol + gate.rtol * size), _spacing(size, dtype))
    flat[place] -= step if flat[place] > 0 else -step
    return moved


def _spacing(size: float, dtype: torch.dtype) -> float:
    """At least the distance from a value of this magnitude to the next one of `dtype`."""
    return max(torch.finfo(dtype).eps * size, tiny_of(dtype)) if dtype.is_floating_point else 1.0
