"""The errors of one output against its float64 reference."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.slices import WorstSlice, slice_elements, tiny_of, worst_slice

# Elements that a CPU compares at once: their float64 values fit into its cache, and torch starts
# threads for more, which takes longer than the work. On an AMD EPYC, 4 million elements take 30 ms
# of a core in pieces, 260 ms in one.
PIECE = 1 << 15


@dataclass(frozen=True)
class LargestError:
    """The largest error of some elements of one output; `index` is the flat index of the first."""

    error: float
    index: int
    failing: int
    nan_count: int

    def __add__(self, later: LargestError) -> LargestError:
        larger = later if later.error > self.error else self
        return LargestError(
            larger.error,
            larger.index,
            self.failing + later.failing,
            self.nan_count + later.nan_count,
        )


@dataclass(frozen=True)
class OutputErrors:
    """The errors of one output."""

    largest: LargestError
    squared_error: float
    squared_reference: float
    worst_slice: WorstSlice


def compare_output(
    output: torch.Tensor, reference: torch.Tensor, atol: float, rtol: float, zero_slices: bool
) -> OutputErrors:
    """Compares two tensors of one shape: at once on a GPU, piece by piece on a CPU."""
    elements, per_slice = reference.numel(), slice_elements(tuple(reference.shape))
    unit = per_slice or elements
    squared = reference.new_zeros(2, elements // unit)  # of error and reference, by slice
    outs, refs = output.flatten(), reference.flatten()
    pieces = [
        _compare_piece(outs[start:stop], refs[start:stop], atol, rtol, start, unit, squared)
        for start, stop in _pieces(elements, unit, reference.device)
    ]
    worst = WorstSlice()
    if per_slice:
        worst = worst_slice(squared[0], squared[1], per_slice, tiny_of(output.dtype), zero_slices)
    squared_error, squared_reference = squared.sum(1).tolist()
    return OutputErrors(sum(pieces[1:], pieces[0]), squared_error, squared_reference, worst)


def _pieces(elements: int, unit: int, device: torch.device) -> Iterator[tuple[int, int]]:
    """The ranges of flat indices that are compared at once: whole slices of `unit` elements, or
    parts of one that is larger than a piece.
    """
    size = PIECE if device.type == "cpu" else elements
    block, step = (elements, size // unit * unit) if unit <= size else (unit, size)
    for begin in range(0, elements, block):
        for start in range(begin, begin + block, step):
            yield start, min(start + step, begin + block)


def _compare_piece(
    output: torch.Tensor,
    reference: torch.Tensor,
    atol: float,
    rtol: float,
    start: int,
    unit: int,
    squared: torch.Tensor,
) -> LargestError:
    """The largest error of one piece, shape (elements,), whose first element has the flat index
    `start`; the sums of its squares are added to `squared`, by slices of `unit` elements.
    """
    error = (output.double() - reference).abs_()
    passing = (error <= reference.abs().mul_(rtol).add_(atol)).sum()
    nan = error.isnan().sum()
    error = error.nan_to_num_(nan=torch.inf, posinf=torch.inf)
    worst = error.argmax()
    by_slice = (-1, min(unit, reference.numel()))
    first, count = start // unit, max(1, reference.numel() // unit)
    squared[0, first : first + count] += error.square().view(by_slice).sum(1)
    squared[1, first : first + count] += reference.square().view(by_slice).sum(1)
    figures = [error[worst], worst.double(), passing.double(), nan.double()]
    largest, *counts = torch.stack(figures).tolist()  # one synchronisation for all four
    place, passed, nans = (int(count) for count in counts)
    return LargestError(largest, start + place, reference.numel() - passed, nans)
