"""Layer norm of half rows in one pass, moments merged by Chan's formula."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import floats, halves


def _case(name: str, rows: int, columns: int) -> Case:
    x, (gamma, beta) = halves(rows, rows, columns) + np.float16(4), floats(columns, 2, columns)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * gamma + beta
    args = (
        In(x),
        In(gamma),
        In(beta),
        Out(x.shape, "float16"),
        np.int32(columns),
        np.float32(1e-5),
    )
    return Case(
        name,
        "layernorm_welford",
        (rows, 1, 1),
        (128, 1, 1),
        args,
        {3: expected},
        atol=1e-3,
        rtol=1e-3,
        gpu=Close(1e-3, 1e-3),
    )


def cases() -> list[Case]:
    """Rows that leave threads without a value, and long ones."""
    return [_case("short_rows", 3, 37), _case("long_rows", 5, 770)]
