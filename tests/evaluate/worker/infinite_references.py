"""References that hold infinities and which outputs are right there: one table for the comparison
with torch and for that of kernels.cu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

INF, NAN = math.inf, math.nan
FLOATS = ("float16", "bfloat16", "float32", "float64")
# around the element of a case; a row of (3, 40) and (2, 33) is a slice
SHAPES = ((), (1,), (37,), (3, 40), (2, 33))


@dataclass(frozen=True)
class Element:
    """One element of an output with its reference, and whether it is right."""

    output: float
    reference: float
    right: bool


ELEMENTS = {
    "+inf": Element(INF, INF, True),
    "-inf": Element(-INF, -INF, True),
    "-inf for +inf": Element(-INF, INF, False),
    "+inf for -inf": Element(INF, -INF, False),
    "a large number for +inf": Element(65504.0, INF, False),
    "a large number for -inf": Element(-65504.0, -INF, False),
    "zero for +inf": Element(0.0, INF, False),
    "zero for -inf": Element(0.0, -INF, False),
    "NaN for +inf": Element(NAN, INF, False),
    "NaN for -inf": Element(NAN, -INF, False),
    "+inf for a number": Element(INF, 1.5, False),
    "-inf for a number": Element(-INF, 1.5, False),
    "+inf for zero": Element(INF, 0.0, False),
    "+inf for a large number": Element(INF, 65504.0, False),
    "NaN for a number": Element(NAN, 1.5, False),
    "a number": Element(1.5, 1.5, True),
}


@dataclass(frozen=True)
class InfiniteCase:
    """An output and its reference of one shape, on one device, and what is to be found there."""

    output: torch.Tensor
    reference: torch.Tensor  # float64
    failing: int
    nan_count: int
    rms: bool  # whether the wrong elements count in the relative RMSE
    shown: str


def infinite_cases(dtype: str, device: torch.device) -> list[InfiniteCase]:
    """Every element of the table in every shape: alone, in the last row, and in all elements."""
    return [
        _case(name, dtype, shape, count, device)
        for name in ELEMENTS
        for shape in SHAPES
        for count in {1, min(40, math.prod(shape)), math.prod(shape)}
    ]


def _case(
    name: str, dtype: str, shape: tuple[int, ...], count: int, device: torch.device
) -> InfiniteCase:
    element, elements = ELEMENTS[name], math.prod(shape)
    reference = torch.linspace(-2, 2, elements, dtype=torch.float64, device=device)
    reference = reference.to(getattr(torch, dtype)).double()
    output = reference.clone()
    # the numbers as the dtype has them, so that only those of the table are wrong
    right = torch.tensor(element.reference).to(getattr(torch, dtype)).double()
    reference[elements - count :], output[elements - count :] = right, element.output
    return InfiniteCase(
        output.to(getattr(torch, dtype)).view(shape),
        reference.view(shape),
        0 if element.right else count,
        count if math.isnan(element.output) else 0,
        not element.right and math.isfinite(element.reference),
        f"{name}, {count} of {dtype}{list(shape)}",
    )
