"""Residual and root-mean-square norm on pairs of bfloat16."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, InOut, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import BFLOAT16


def _case(name: str, rows: int, columns: int, threads: int) -> Case:
    residual, x = BFLOAT16.encode(floats(rows, 2, rows, columns))
    weight = BFLOAT16.encode(floats(columns, columns))
    total = BFLOAT16.rounded(BFLOAT16.decode(residual) + BFLOAT16.decode(x))
    expected = (
        total / np.sqrt((total**2).mean(axis=1, keepdims=True) + 1e-6) * BFLOAT16.decode(weight)
    )
    inputs = (
        InOut(residual, "bfloat16"),
        In(x, "bfloat16"),
        In(weight, "bfloat16"),
        Out(x.shape, "bfloat16"),
    )
    args = (*inputs, np.int32(columns // 2), np.float32(1e-6))
    close = Close(1e-3, 8e-3)
    return Case(
        name,
        "bfloat_rmsnorm",
        (rows, 1, 1),
        (threads, 1, 1),
        args,
        {0: total, 3: expected},
        1e-3,
        8e-3,
        close,
    )


def cases() -> list[Case]:
    """Rows shorter than a block, and rows of several rounds."""
    return [_case("short_rows", 3, 42, 64), _case("long_rows", 4, 770, 128)]
