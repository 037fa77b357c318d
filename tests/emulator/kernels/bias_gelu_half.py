"""Bias, tanh gelu and residual in one pass over halves."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves


def _case(name: str, rows: int, columns: int) -> Case:
    x, residual = halves(rows, 2, rows, columns)
    bias = halves(columns, columns)
    y = (x + bias).astype(np.float64)  # rounded to half, as the kernel does
    gelu = 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))
    expected = gelu + residual.astype(np.float64)
    args = (In(x), In(bias), In(residual), Out(x.shape, "float16"), np.int32(columns))
    grid = (-(-columns // (32 * 8)), rows, 1)
    return Case(
        name,
        "bias_gelu_half",
        grid,
        (32, 1, 1),
        args,
        {3: expected},
        atol=2e-3,
        rtol=2e-3,
        gpu=Close(2e-3, 2e-3),
    )


def cases() -> list[Case]:
    """Rows in pieces of 16 bytes, and odd ones."""
    return [_case("pieces", 3, 264), _case("odd", 5, 77)]
