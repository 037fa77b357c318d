"""Softmax of half rows that stay in registers."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, softmax


def _case(items: int, rows: int, columns: int) -> Case:
    x = halves(rows, rows, columns, scale=3.0)
    x[0, :2] = -np.inf  # masked
    args = (In(x), Out(x.shape, "float16"), np.int32(rows), np.int32(columns))
    kernel, grid = f"softmax_half<{items}>", (-(-rows // 4), 1, 1)
    expected = {1: softmax(x)}
    return Case(
        f"columns_{columns}",
        kernel,
        grid,
        (32, 4, 1),
        args,
        expected,
        atol=1e-5,
        rtol=1.5e-3,
        gpu=Close(1e-5, 1.5e-3),
    )


def cases() -> list[Case]:
    """Less than a warp, and rows that end within one."""
    return [_case(1, 5, 19), _case(4, 9, 101)]
