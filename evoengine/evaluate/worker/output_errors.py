"""The errors of one output against its float64 reference."""

from __future__ import annotations

import math
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
    """The largest error of some elements of one output; `index` is the flat index of the first.

    No element would fail with an atol of `needed_atol`.
    """

    error: float
    index: int
    failing: int
    nan_count: int
    needed_atol: float

    def __add__(self, later: LargestError) -> LargestError:
        larger = later if later.error > self.error else self
        return LargestError(
            larger.error,
            larger.index,
            self.failing + later.failing,
            self.nan_count + later.nan_count,
            max(self.needed_atol, later.needed_atol),
        )


@dataclass(frozen=True)
class OutputErrors:
    """The errors of one output; the sums are over its `finite` elements, whose reference is."""

    largest: LargestError
    squared_error: float
    squared_reference: float
    finite: int
    worst_slice: WorstSlice


def compare_output(
    output: torch.Tensor, reference: torch.Tensor, atol: float, rtol: float, zero_slices: bool
) -> OutputErrors:
    """Compares two tensors of one shape: at once on a GPU, piece by piece on a CPU."""
    elements, per_slice = reference.numel(), slice_elements(tuple(reference.shape))
    unit = per_slice or elements
    # squares of error and reference, and infinities of the reference, by slice
    sums = reference.new_zeros(3, elements // unit)
    outs, refs = output.flatten(), reference.flatten()
    pieces = [
        _compare_piece(outs[start:stop], refs[start:stop], atol, rtol, start, unit, sums)
        for start, stop in _pieces(elements, unit, reference.device)
    ]
    worst = WorstSlice()
    if per_slice:
        tiny = tiny_of(output.dtype)
        worst = worst_slice(sums[0], sums[1], per_slice - sums[2], tiny, zero_slices)
    squared_error, squared_reference, infinite = sums.sum(1).tolist()
    return OutputErrors(
        sum(pieces[1:], pieces[0]),
        squared_error,
        squared_reference,
        elements - int(infinite),
        worst,
    )


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
    sums: torch.Tensor,
) -> LargestError:
    """The largest error of one piece, shape (elements,), whose first element has the flat index
    `start`; its sums are added to `sums`, by slices of `unit` elements.
    """
    error = (output.double() - reference).abs_()
    beyond = reference.abs()  # becomes each error without its relative tolerance
    infinite = beyond == torch.inf if bool(beyond.max() == torch.inf) else None
    if infinite is not None:
        # the same infinity is no error; every other value has an infinite one, or NaN
        error.masked_fill_(infinite & (output == reference), 0)
        reference = reference.masked_fill(infinite, 0)
        beyond.masked_fill_(infinite, 0)
    beyond.mul_(-rtol).add_(error)
    needed, passing = beyond.max(), (beyond <= atol).sum()
    del beyond  # the allocator gives memory back to the system, and asks again, for one more
    nan = error.isnan().sum()
    error = error.nan_to_num_(nan=torch.inf, posinf=torch.inf)
    worst = error.argmax()
    figures = [error[worst], worst.double(), passing.double(), nan.double(), needed]
    largest, *counts, needed_atol = torch.stack(figures).tolist()  # one synchronisation for all
    if infinite is None:
        _add_squares(sums, (error, reference), start, unit)
    else:
        error.masked_fill_(infinite, 0)
        _add_squares(sums, (error, reference, infinite.double()), start, unit)
    place, passed, nans = (int(count) for count in counts)
    return LargestError(
        largest,
        start + place,
        reference.numel() - passed,
        nans,
        math.inf if math.isnan(needed_atol) else max(0.0, needed_atol),
    )


def _add_squares(
    sums: torch.Tensor, terms: tuple[torch.Tensor, ...], start: int, unit: int
) -> None:
    """Adds the sums of squares of a piece, one for each of `terms`, to the rows of `sums`."""
    elements = terms[0].numel()
    first, count = start // unit, max(1, elements // unit)
    for row, values in zip(sums, terms, strict=False):
        row[first : first + count] += values.square().view(-1, min(unit, elements)).sum(1)
