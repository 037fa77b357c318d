"""Attention with a warp a query row and the row of scores in shared memory."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import attention, halves


def _case(heads: int, length: int) -> Case:
    q, k, v = halves(length, 3, heads, length, 64)
    args = (In(q), In(k), In(v), Out(q.shape, "float16"), np.int32(length), np.float32(0.125))
    grid, shared = (-(-length // 4), heads, 1), 4 * 4 * length
    tolerance = Close(1e-3, 2e-3)
    expected = {3: attention(q, k, v)}
    return Case(
        f"s{length}",
        "attention_rows",
        grid,
        (32, 4, 1),
        args,
        expected,
        1e-3,
        2e-3,
        tolerance,
        shared,
    )


def cases() -> list[Case]:
    """A row more than a warp, and a length with blocks to spare."""
    return [_case(2, 33), _case(1, 100)]
