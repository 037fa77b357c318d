"""Transposes of a batch of half matrices."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import halves


def _case(name: str, batch: int, rows: int, columns: int) -> Case:
    x = halves(rows, batch, rows, columns)
    args = (In(x), Out((batch, columns, rows), "float16"), np.int32(rows), np.int32(columns))
    grid = (-(-columns // 32), -(-rows // 32), batch)
    expected = {1: np.ascontiguousarray(x.swapaxes(1, 2))}
    return Case(name, "batched_transpose_half", grid, (16, 8, 1), args, expected)


def cases() -> list[Case]:
    """Even rows in pairs, and odd ones."""
    return [_case("even", 2, 40, 34), _case("odd", 3, 33, 65)]
