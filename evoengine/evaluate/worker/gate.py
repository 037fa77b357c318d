"""The comparison of every element with the float64 reference, and the gate of a tier.

Three bounds hold at once for an input set: one for each element (atol, rtol), one for each output
as a whole (rel_rmse), and one for each slice (rel_slice), because a quiet head or row that is left
out hardly counts among loud ones. slices.py defines slices and their errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evoengine.evaluate.worker.inputs import Tensors
from evoengine.evaluate.worker.output_errors import compare_output
from evoengine.evaluate.worker.slices import slice_dims
from evoengine.task.schema import Tier

# A slice may have this many times the relative RMSE of the whole tensor. Slices of honest kernels
# differ in it: one has a few large values and many that cancel, another does not.
SLICE_FACTOR = 4.0


@dataclass(frozen=True)
class Errors:
    """The errors of a set of outputs against its reference, over all elements.

    `failing` elements exceed atol + rtol * |reference|; NaN counts as failing, with an infinite
    error. `rel_rmse` is the RMS error over the RMS reference, the largest of any output: a quiet
    one that is left out would hardly count among loud ones. `slice_rel_rmse` is the largest error
    of a slice, 0 without slices; the slice has the index `worst_slice` in the leading dimensions of
    `worst_slice_output`.
    """

    max_abs: float
    rel_rmse: float
    failing: int
    elements: int
    nan_count: int
    worst_output: str
    worst_index: tuple[int, ...]
    slice_rel_rmse: float = 0.0
    worst_slice_output: str = ""
    worst_slice: tuple[int, ...] = ()


@dataclass(frozen=True)
class Gate:
    """The limits that hold for one input set."""

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


def gate_of(tier: Tier, trusted: Errors | None) -> Gate:
    """The tier's gate, widened to a multiple of the trusted implementation's errors on the same
    inputs.

    The errors of one that overflows are ignored: infinite limits would let everything pass.
    """
    if (
        trusted is None
        or trusted.nan_count
        or not math.isfinite(trusted.max_abs + trusted.rel_rmse + trusted.slice_rel_rmse)
    ):
        return Gate(tier.atol, tier.rtol, tier.rel_rmse, SLICE_FACTOR * tier.rel_rmse)
    rel_rmse = max(tier.rel_rmse, tier.trusted_factor * trusted.rel_rmse)
    return Gate(
        atol=max(tier.atol, tier.trusted_factor * trusted.max_abs),
        rtol=tier.rtol,
        rel_rmse=rel_rmse,
        rel_slice=max(SLICE_FACTOR * rel_rmse, tier.trusted_factor * trusted.slice_rel_rmse),
    )


def compare(
    outputs: Tensors, reference: Tensors, atol: float, rtol: float, zero_slices: bool = True
) -> Errors:
    """The errors of `outputs` against `reference`, over every element of every output.

    `outputs` have any dtype, `reference` is float64; both hold, by the same names, tensors of
    the same shapes on the same device. Without `zero_slices`, slices whose reference is zero do not
    count as slices: for a trusted implementation, whose errors there say nothing about the others.
    """
    parts = {
        name: compare_output(outputs[name], reference[name], atol, rtol, zero_slices)
        for name in reference
    }
    worst_name = max(parts, key=lambda name: parts[name].largest.error)
    slice_name = max(parts, key=lambda name: parts[name].worst_slice.rel_rmse)
    worst, row = parts[worst_name].largest, parts[slice_name].worst_slice
    return Errors(
        max_abs=worst.error,
        rel_rmse=max(
            relative_rmse(part.squared_error, part.squared_reference, reference[name].numel())
            for name, part in parts.items()
        ),
        failing=sum(part.largest.failing for part in parts.values()),
        elements=sum(reference[name].numel() for name in reference),
        nan_count=sum(part.largest.nan_count for part in parts.values()),
        worst_output=worst_name,
        worst_index=_index(worst.index, tuple(reference[worst_name].shape)),
        slice_rel_rmse=row.rel_rmse,
        worst_slice_output=slice_name if row.number >= 0 else "",
        worst_slice=_slice_index(row.number, tuple(reference[slice_name].shape)),
    )


def relative_rmse(squared_error: float, squared_reference: float, elements: int) -> float:
    """The relative RMSE of one output with these sums of squares; absolute where its reference is
    zero.
    """
    scale = squared_reference if squared_reference > 0 else float(elements)
    return math.sqrt(squared_error / scale)


def _slice_index(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of a slice in the leading dimensions of a tensor; () if it has no slices."""
    return _index(number, shape[: -slice_dims(shape)]) if number >= 0 else ()


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index in each dimension of the element at a flat index."""
    index = []
    for extent in reversed(shape):
        flat, position = divmod(flat, extent)
        index.append(position)
    return tuple(reversed(index))
