"""Exponentials, logarithms, roots and angles of halves."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out, Ulp
from tests.emulator.float64_references import halves
from tests.emulator.narrow_formats import HALF


def cases() -> list[Case]:
    """Values of moderate size; the functions are approximations, documented to 2 ulp of half."""
    x = halves(3, 700, scale=1.5)
    x = x[np.abs(x) > 0.01]
    wide, size = x.astype(np.float64), np.abs(x.astype(np.float64))
    rows = [
        np.exp(wide),
        np.exp2(wide),
        10.0**wide,
        np.log(size),
        np.log2(size),
        np.log10(size),
        np.sqrt(size),
        1 / np.sqrt(size),
    ]
    rows += [1 / wide, np.sin(wide), np.cos(wide), np.exp2(wide), 1 / np.sqrt(size)]
    args = (In(x), Out((13, x.size), "float16"), np.int32(x.size))
    grid = (-(-x.size // 128), 1, 1)
    expected = {1: HALF.rounded(np.stack(rows))}
    return [
        Case(
            "moderate",
            "half_functions",
            grid,
            (128, 1, 1),
            args,
            expected,
            atol=1e-3,
            rtol=2e-3,
            gpu=Ulp(2, "float16"),
        )
    ]
