"""Attention whose query heads share heads of keys and values."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import attention, halves


def _case(heads: int, kv_heads: int, length: int) -> Case:
    q = halves(length, heads, length, 64)
    k, v = halves(length + 1, 2, kv_heads, length, 64)
    sizes = (np.int32(heads), np.int32(kv_heads), np.int32(length), np.float32(0.125))
    args = (In(q), In(k), In(v), Out(q.shape, "float16"), *sizes)
    grid, expected = (-(-length // 4), heads, 1), {3: attention(q, k, v)}
    return Case(
        f"h{heads}_g{kv_heads}",
        "attention_grouped",
        grid,
        (128, 1, 1),
        args,
        expected,
        1e-3,
        2e-3,
        Close(1e-3, 2e-3),
    )


def cases() -> list[Case]:
    """Groups of two and of three, and all heads on one."""
    return [_case(4, 2, 33), _case(6, 2, 18), _case(3, 1, 40)]
