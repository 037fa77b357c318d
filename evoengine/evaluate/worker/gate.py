"""The comparison of every element with the float64 reference, and the gate of a tier."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.inputs import Tensors
from evoengine.task.schema import Tier

# Elements that a CPU compares at once: their float64 values fit into its cache, and torch starts
# threads for more, which takes longer than the work. On an AMD EPYC, 4 million elements take 30 ms
# of a core in pieces, 260 ms in one.
PIECE = 1 << 15


@dataclass(frozen=True)
class Errors:
    """The errors of a set of outputs against its reference, over all elements.

    `failing` elements exceed atol + rtol * |reference|; NaN counts as failing, with an infinite
    error. `rel_rmse` is the RMS error over the RMS reference.
    """

    max_abs: float
    rel_rmse: float
    failing: int
    elements: int
    nan_count: int
    worst_output: str
    worst_index: tuple[int, ...]


@dataclass(frozen=True)
class Gate:
    """The limits that hold for one input set."""

    atol: float
    rtol: float
    rel_rmse: float

    def passes(self, errors: Errors) -> bool:
        """Whether no element fails and the relative RMSE is within its limit; NaN never passes."""
        return errors.failing == 0 and errors.rel_rmse <= self.rel_rmse


def gate_of(tier: Tier, trusted: Errors | None) -> Gate:
    """The tier's gate, widened to a multiple of the trusted implementation's errors on the same
    inputs.

    The errors of one that overflows are ignored: infinite limits would let everything pass.
    """
    if (
        trusted is None
        or trusted.nan_count
        or not math.isfinite(trusted.max_abs + trusted.rel_rmse)
    ):
        return Gate(tier.atol, tier.rtol, tier.rel_rmse)
    return Gate(
        atol=max(tier.atol, tier.trusted_factor * trusted.max_abs),
        rtol=tier.rtol,
        rel_rmse=max(tier.rel_rmse, tier.trusted_factor * trusted.rel_rmse),
    )


def compare(outputs: Tensors, reference: Tensors, atol: float, rtol: float) -> Errors:
    """The errors of `outputs` against `reference`, over every element of every output.

    `outputs` have any dtype, `reference` is float64; both hold, by the same names, tensors of
    the same shapes on the same device.
    """
    parts = {
        name: _compare_one(outputs[name].flatten(), reference[name].flatten(), atol, rtol)
        for name in reference
    }
    worst_name = max(parts, key=lambda name: parts[name].max_abs)
    worst = parts[worst_name]
    elements = sum(reference[name].numel() for name in reference)
    squares = sum(part.squared_reference for part in parts.values())
    scale = squares if squares > 0 else float(elements)  # an all-zero reference: absolute RMSE
    return Errors(
        max_abs=worst.max_abs,
        rel_rmse=(sum(part.squared_error for part in parts.values()) / scale) ** 0.5,
        failing=sum(part.failing for part in parts.values()),
        elements=elements,
        nan_count=sum(part.nan_count for part in parts.values()),
        worst_output=worst_name,
        worst_index=_index(worst.worst, tuple(reference[worst_name].shape)),
    )


@dataclass(frozen=True)
class _Sums:
    """The error sums of some elements of one output; `worst` is the flat index of the first of the
    largest errors.
    """

    max_abs: float
    squared_error: float
    squared_reference: float
    failing: int
    nan_count: int
    worst: int

    def __add__(self, later: _Sums) -> _Sums:
        larger = later if later.max_abs > self.max_abs else self
        return _Sums(
            larger.max_abs,
            self.squared_error + later.squared_error,
            self.squared_reference + later.squared_reference,
            self.failing + later.failing,
            self.nan_count + later.nan_count,
            larger.worst,
        )


def _compare_one(output: torch.Tensor, reference: torch.Tensor, atol: float, rtol: float) -> _Sums:
    """Compares two tensors of shape (elements,): at once on a GPU, piece by piece on a CPU."""
    size = PIECE if reference.device.type == "cpu" else max(1, reference.numel())
    pieces = zip(output.split(size), reference.split(size), strict=True)
    first, *rest = (_sums(*piece, atol, rtol, number * size) for number, piece in enumerate(pieces))
    return sum(rest, first)


def _sums(
    output: torch.Tensor, reference: torch.Tensor, atol: float, rtol: float, start: int
) -> _Sums:
    """The sums of one piece, shape (elements,), whose first element has the flat index `start`."""
    error = (output.double() - reference).abs_()
    passing = (error <= reference.abs().mul_(rtol).add_(atol)).sum()
    nan = error.isnan().sum()
    error = error.nan_to_num_(nan=torch.inf, posinf=torch.inf)
    worst = error.argmax()
    figures = [
        error[worst],
        error.square().sum(),
        reference.square().sum(),
        passing.double(),
        nan.double(),
        worst.double(),
    ]
    max_abs, squared_error, squared_reference, *counts = torch.stack(
        figures
    ).tolist()  # one synchronisation for all six
    passed, nans, place = (int(count) for count in counts)
    return _Sums(
        max_abs, squared_error, squared_reference, reference.numel() - passed, nans, start + place
    )


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index in each dimension of the element at a flat index."""
    index = []
    for extent in reversed(shape):
        flat, position = divmod(flat, extent)
        index.append(position)
    return tuple(reversed(index))
