"""The comparison of every element with the float64 reference, and the gate of each output.

Three bounds hold at once for an output of an input set: one for each element (atol, rtol), one for
the output as a whole (rel_rmse), and one for each slice (rel_slice), because a quiet head or row
that is left out hardly counts among loud ones. slices.py defines slices and their errors.

Outputs are never pooled: each has its tolerances, its trusted error and its gate. Where a reference
is infinite, the output must be the same infinity; such an element counts in no RMSE.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.inputs import Tensors
from evoengine.evaluate.worker.output_errors import compare_output
from evoengine.evaluate.worker.slices import slice_dims
from evoengine.task.schema import Tolerances

# A slice may have this many times the relative RMSE of the whole tensor. Slices of honest kernels
# differ in it: one has a few large values and many that cancel, another does not.
SLICE_FACTOR = 4.0
# The relative error of a slice that is left out. Where as much is allowed, because its terms cancel
# and the trusted implementation does not get it right either, noise is compared with noise: on an
# H100 that of an honest fp8 attention kernel was 2.1 times the trusted one's.
LEFT_OUT, NOISE_FACTOR = 1.0, 4.0
# How many times the error from rounding the inputs otherwise (input_rounding.py) a gate allows
ROUNDING_FACTOR = 2.0


@dataclass(frozen=True)
class Errors:
    """The errors of one output against its reference, over all elements.

    `failing` elements exceed atol + rtol * |reference|; `needed_atol` is the least atol with which
    none would. NaN counts as failing, with an infinite error, and so does everything but the same
    infinity where the reference is infinite. `rel_rmse` is the RMS error over the RMS reference.
    `slice_rel_rmse` is the largest error of a slice, which has the index `worst_slice` in the
    leading dimensions; 0 and () without slices. On a GPU both indices are () where only the figures
    are known.
    """

    max_abs: float
    rel_rmse: float
    failing: int
    elements: int
    nan_count: int
    needed_atol: float
    worst_index: tuple[int, ...] = ()
    slice_rel_rmse: float = 0.0
    worst_slice: tuple[int, ...] = ()


@dataclass(frozen=True)
class Gate:
    """The limits that hold for one output of one input set."""

    atol: float
    rtol: float
    rel_rmse: float
    rel_slice: float

    def passes(self, errors: Errors) -> bool:
        """Whether no element fails and the relative RMSE of the whole and of each slice is within
        its limit; NaN never passes.
        """
        return (
            errors.failing == 0
            and errors.rel_rmse <= self.rel_rmse
            and errors.slice_rel_rmse <= self.rel_slice
        )

    def share(self, errors: Errors) -> float:
        """The largest of the errors in units of its limit: at most 1 where it passes."""
        return max(
            share_of(errors.needed_atol, self.atol),
            share_of(errors.rel_rmse, self.rel_rmse),
            share_of(errors.slice_rel_rmse, self.rel_slice),
        )


def gate_of(
    tolerances: Tolerances,
    trusted: Errors | None,
    rounding: Errors | None = None,
    growth: float = 1.0,
    chance: float = 1.0,
) -> Gate:
    """The gate of one output, widened to multiples of two errors on the same inputs: those of the
    trusted implementation, and those of the reference where inputs are rounded otherwise.

    `growth` says how many times as large as on inputs from N(0, 1) the reference is: atol, a
    tolerance for outputs of that size, is multiplied by it. `chance` is what rmse_chance.py finds
    for the reference: rel_rmse, a tolerance for outputs of many elements, is multiplied by it.
    The errors of one that overflows are ignored: infinite limits would let everything pass.
    """
    rel_rmse = chance * tolerances.rel_rmse
    gate = Gate(growth * tolerances.atol, tolerances.rtol, rel_rmse, SLICE_FACTOR * rel_rmse)
    gate = _widened(gate, tolerances.trusted_factor, trusted)
    return _widened(gate, ROUNDING_FACTOR, rounding)


def _widened(gate: Gate, factor: float, errors: Errors | None) -> Gate:
    if (
        errors is None
        or errors.nan_count
        or not math.isfinite(errors.max_abs + errors.rel_rmse + errors.slice_rel_rmse)
    ):
        return gate
    rel_rmse = max(gate.rel_rmse, factor * errors.rel_rmse)
    rel_slice = factor * errors.slice_rel_rmse
    if rel_slice >= LEFT_OUT:
        rel_slice = max(rel_slice, NOISE_FACTOR * errors.slice_rel_rmse)
    return Gate(
        atol=max(gate.atol, factor * errors.max_abs),
        rtol=gate.rtol,
        rel_rmse=rel_rmse,
        rel_slice=max(gate.rel_slice, SLICE_FACTOR * rel_rmse, rel_slice),
    )


def compare(
    outputs: Tensors, reference: Tensors, gates: Mapping[str, Gate], zero_slices: bool = True
) -> dict[str, Errors]:
    """The errors of each output by name, over every element, under its gate's atol and rtol.

    `outputs` have any dtype, `reference` is float64; both hold, by the same names, tensors of
    the same shapes on the same device. Without `zero_slices`, slices whose reference is zero do not
    count as slices: for a trusted implementation, whose errors there say nothing about the others.
    """
    return {
        name: errors_of(outputs[name], reference[name], gates[name], zero_slices)
        for name in reference
    }


def errors_of(
    output: torch.Tensor, reference: torch.Tensor, gate: Gate, zero_slices: bool = True
) -> Errors:
    """The errors of one output, as `compare` returns them."""
    found = compare_output(output, reference, gate.atol, gate.rtol, zero_slices)
    largest, row, shape = found.largest, found.worst_slice, tuple(reference.shape)
    return Errors(
        max_abs=largest.error,
        rel_rmse=relative_rmse(found.squared_error, found.squared_reference, found.finite),
        failing=largest.failing,
        elements=reference.numel(),
        nan_count=largest.nan_count,
        needed_atol=largest.needed_atol,
        worst_index=_index(largest.index, shape),
        slice_rel_rmse=row.rel_rmse,
        worst_slice=_index(row.number, shape[: -slice_dims(shape)]) if row.number >= 0 else (),
    )


def nearest_to_limit(errors: Mapping[str, Errors], gates: Mapping[str, Gate]) -> str:
    """The output that fails most clearly; where all pass, the one that is nearest to a limit."""
    return max(errors, key=lambda name: _clearness(errors[name], gates[name]))


def largest_share(errors: Mapping[str, Errors], gates: Mapping[str, Gate]) -> float:
    """The largest error of any output, in units of its limit."""
    return max(gates[name].share(found) for name, found in errors.items())


def all_pass(errors: Mapping[str, Errors], gates: Mapping[str, Gate]) -> bool:
    """Whether every output passes its gate."""
    return all(gates[name].passes(found) for name, found in errors.items())


def relative_rmse(squared_error: float, squared_reference: float, elements: int) -> float:
    """The relative RMSE of one output with these sums of squares; absolute where its reference is
    zero.

    `elements` are those whose reference is finite; without any it is 0.
    """
    scale = squared_reference if squared_reference > 0 else float(max(1, elements))
    return math.sqrt(squared_error / scale)


def _clearness(errors: Errors, gate: Gate) -> tuple[bool, bool, float]:
    return not gate.passes(errors), errors.nan_count > 0, gate.share(errors)


def share_of(error: float, limit: float) -> float:
    """An error in units of its limit: infinity for one that is not a number, or has no room."""
    if math.isnan(error) or math.isinf(error):
        return math.inf
    return error / limit if limit > 0 else math.inf if error > 0 else 0.0


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index in each dimension of the element at a flat index."""
    index = []
    for extent in reversed(shape):
        flat, position = divmod(flat, extent)
        index.append(position)
    return tuple(reversed(index))
