"""Half arithmetic by operators, as in code written for floats; a half by value as parameter."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, InOut
from tests.emulator.float64_references import halves


def _case(name: str, n: int) -> Case:
    x, y = halves(n, 2, n)
    v = np.abs(0.75 * x.astype(np.float64) + y.astype(np.float64)) * 2 + 1
    expected = np.where(v >= 2.5, 2.5 + (v - 2.5) / 4, v)
    args = (In(x), InOut(y), np.float16(0.75), np.int32(n))
    return Case(
        name,
        "half_operators",
        (2, 1, 1),
        (96, 1, 1),
        args,
        {1: expected},
        atol=4e-3,
        rtol=2e-3,
        gpu=Close(4e-3, 2e-3),
    )


def cases() -> list[Case]:
    """Less than the grid, and a loop over it that ends unevenly."""
    return [_case("few", 50), _case("grid_stride", 501)]
