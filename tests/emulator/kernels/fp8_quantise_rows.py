"""Rows to e4m3 with a scale each; a row of zeros keeps scale 1."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import E4M3


def _case(name: str, rows: int, columns: int, threads: int) -> Case:
    x = floats(rows, rows, columns, scale=3.0)
    x[1] = 0
    top = np.abs(x).max(axis=1)
    scale = np.where(top > 0, top / np.float32(448), np.float32(1)).astype(np.float32)
    codes = E4M3.encode((x / scale[:, None]).astype(np.float64), saturate=True)
    args = (In(x), Out(x.shape, "uint8"), Out(rows, "float32"), np.int32(columns))
    return Case(
        name,
        "fp8_quantise_rows",
        (rows, 1, 1),
        (threads, 1, 1),
        args,
        {1: codes, 2: scale},
        arch="sm_89",
    )


def cases() -> list[Case]:
    """Rows shorter than a block, and longer ones of odd length."""
    return [_case("short_rows", 3, 50, 64), _case("long_rows", 5, 1003, 256)]
