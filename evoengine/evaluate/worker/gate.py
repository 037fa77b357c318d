"""The comparison of every element with float64, and the gate of a tier."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.inputs import Tensors
from evoengine.task import Tier


@dataclass(frozen=True)
class Errors:
    """How far a set of outputs is from its reference."""

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
        """NaN never passes: it counts as a failing element, and no comparison with it is true."""
        return errors.failing == 0 and errors.rel_rmse <= self.rel_rmse


def gate_of(tier: Tier, trusted: Errors | None) -> Gate:
    """The tier's gate, widened to a multiple of what a trusted implementation reaches on the same inputs.

    One that overflows there has no error to go by; infinite limits would let everything pass.
    """
    if trusted is None or trusted.nan_count or not math.isfinite(trusted.max_abs + trusted.rel_rmse):
        return Gate(tier.atol, tier.rtol, tier.rel_rmse)
    return Gate(
        atol=max(tier.atol, tier.trusted_factor * trusted.max_abs),
        rtol=tier.rtol,
        rel_rmse=max(tier.rel_rmse, tier.trusted_factor * trusted.rel_rmse),
    )


def compare(outputs: Tensors, reference: Tensors, atol: float, rtol: float) -> Errors:
    """The errors of `outputs` against float64 `reference`, over every element of every output."""
    parts = [(name, *_compare_one(outputs[name], reference[name], atol, rtol)) for name in reference]
    worst_name, figures, worst_at = max(parts, key=lambda part: part[1][0])
    squared_error = sum(part[1][1] for part in parts)
    squared_reference = sum(part[1][2] for part in parts)
    elements = sum(reference[name].numel() for name in reference)
    scale = squared_reference if squared_reference > 0 else float(elements)  # an all-zero reference: absolute RMSE
    return Errors(
        max_abs=figures[0],
        rel_rmse=(squared_error / scale) ** 0.5,
        failing=sum(int(part[1][3]) for part in parts),
        elements=elements,
        nan_count=sum(int(part[1][4]) for part in parts),
        worst_output=worst_name,
        worst_index=worst_at,
    )


def _compare_one(output: torch.Tensor, reference: torch.Tensor, atol: float, rtol: float) -> tuple[list[float], tuple[int, ...]]:
    wide = output.double()
    error = (wide - reference).abs_()
    nan = error.isnan()
    error = torch.where(nan, torch.inf, error)
    failing = ~(error <= reference.abs().mul_(rtol).add_(atol)) | nan
    worst = error.argmax()
    figures = torch.stack(
        [
            error.flatten()[worst],
            error.square().sum(),
            reference.square().sum(),
            failing.sum().double(),
            nan.sum().double(),
            worst.double(),
        ]
    ).tolist()  # one synchronisation for all six
    return figures[:5], _index(int(figures[5]), tuple(reference.shape))


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for extent in reversed(shape):
        flat, position = divmod(flat, extent)
        index.append(position)
    return tuple(reversed(index))
