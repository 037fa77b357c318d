"""A row's sum in packed halves, in a fixed order: every machine rounds alike."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import halves


def _case(name: str, rows: int, pairs: int) -> Case:
    x = halves(rows, rows, pairs, 2, scale=0.1)
    sums = x.astype(np.float64).sum(axis=1)
    args = (In(x), Out(rows, "float32"), Out((rows, 2), "float16"), np.int32(rows), np.int32(pairs))
    expected = {1: sums.sum(axis=1), 2: sums}
    return Case(
        name,
        "half2_row_sum",
        (-(-rows // 4), 1, 1),
        (32, 4, 1),
        args,
        expected,
        atol=0.02,
        rtol=5e-3,
    )


def cases() -> list[Case]:
    """Rows shorter than a warp, and rows that do not end with one."""
    return [_case("short_rows", 5, 19), _case("long_rows", 9, 333)]
