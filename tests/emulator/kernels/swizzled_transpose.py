"""A transpose through a tile whose columns are exchanged by XOR."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats


def _case(name: str, rows: int, columns: int) -> Case:
    x = floats(rows, rows, columns)
    args = (In(x), Out((columns, rows), "float32"), np.int32(rows), np.int32(columns))
    grid = (-(-columns // 32), -(-rows // 32), 1)
    return Case(name, "swizzled_transpose", grid, (32, 8, 1), args, {1: np.ascontiguousarray(x.T)})


def cases() -> list[Case]:
    """Whole tiles, and sides that end within one."""
    return [_case("whole", 64, 32), _case("odd_sides", 45, 71)]
