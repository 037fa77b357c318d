"""Root-mean-square norm of half rows into floats."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves


def _case(name: str, rows: int, columns: int, threads: int) -> Case:
    x, weight = halves(rows, rows, columns), halves(columns, columns)
    wide = x.astype(np.float64)
    expected = (
        wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * weight.astype(np.float64)
    )
    args = (In(x), In(weight), Out(x.shape, "float32"), np.int32(columns // 2), np.float32(1e-5))
    return Case(
        name,
        "rmsnorm_half",
        (rows, 1, 1),
        (threads, 1, 1),
        args,
        {2: expected},
        atol=1e-5,
        rtol=1e-5,
        gpu=Close(1e-5, 1e-5),
    )


def cases() -> list[Case]:
    """Rows shorter than a block, and rows of several rounds."""
    return [_case("short_rows", 3, 50, 64), _case("long_rows", 4, 1022, 256)]
