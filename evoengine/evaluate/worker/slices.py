"""The slices of a tensor (its rows, as a rule) and their relative errors.

A slice is the smallest trailing block of dimensions with at least SMALLEST_SLICE elements. If that
leaves no leading dimension, the tensor has no slices: [B, H, S, 64] has B * H * S of them,
[M, 8, 16] has M, [7, 333] has 7, [4096] and [4, 16] have none.

For a slice of n elements, in float64:

    rmse     = sqrt(sum((out - ref)^2) / n)
    rms      = sqrt(sum(ref^2) / n)
    rel_rmse = max(0, rmse - tiny) / rms    if rms > 0
               0                            if rms = 0 and rmse <= tiny
               infinity                     if rms = 0 and rmse > tiny

Elements whose reference is infinite are left out, of n too; a slice of nothing else has rel_rmse 0.
`tiny` is what rounding may cost where the reference, or what a kernel computes on the way to it,
underflows: see tiny_of. NaN and infinity in
`out` give infinity. Hence rel_rmse <= limit says rmse <= limit * rms + tiny. The worst slice is the
first with the largest rel_rmse, in the order of memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

SMALLEST_SLICE = 32  # the RMS of fewer elements varies too much from slice to slice
# Kernels compute in single precision. A number on the way, such as a weight of attention, loses its
# digits below 2**-126, and is multiplied by values of up to a thousand, as `extreme` inputs are.
UNDERFLOW = 2.0**-116


@dataclass(frozen=True)
class WorstSlice:
    """The largest relative RMSE of a slice, and that slice's number; without slices 0 and -1."""

    rel_rmse: float = 0.0
    number: int = -1


def slice_dims(shape: tuple[int, ...]) -> int:
    """The number of trailing dimensions that make up a slice of a tensor; 0 if it has no slices."""
    for dims in range(1, len(shape)):
        if math.prod(shape[-dims:]) >= SMALLEST_SLICE:
            return dims
    return 0


def slice_elements(shape: tuple[int, ...]) -> int:
    """The number of elements of a slice; 0 if the tensor has no slices."""
    dims = slice_dims(shape)
    return math.prod(shape[-dims:]) if dims else 0


def tiny_of(dtype: torch.dtype) -> float:
    """The smallest positive number of a dtype, subnormals included, and at least UNDERFLOW; that of
    float64 alone, and 0 for integers and bool.
    """
    if not dtype.is_floating_point:
        return 0.0
    info = torch.finfo(dtype)
    own = info.smallest_normal * info.eps
    return own if dtype == torch.float64 else max(own, UNDERFLOW)


def worst_slice(
    squared_error: torch.Tensor,
    squared_reference: torch.Tensor,
    elements: torch.Tensor,
    tiny: float,
    zero_slices: bool = True,
) -> WorstSlice:
    """The worst of the slices with these sums of squares over so many elements, all of shape
    (slices,), float64. Without `zero_slices`, slices whose reference is zero count as exact.
    """
    elements = elements.clamp_min(1)
    excess = (squared_error / elements).sqrt_().sub_(tiny).clamp_min_(0)
    rms = (squared_reference / elements).sqrt_()
    exact = (rms == 0) & (excess == 0) if zero_slices else rms == 0
    rel_rmse = (excess / rms).masked_fill_(exact, 0).nan_to_num_(nan=torch.inf, posinf=torch.inf)
    number = rel_rmse.argmax()
    largest, place = torch.stack([rel_rmse[number], number.double()]).tolist()
    return WorstSlice(largest, int(place))
