"""Attention with scores by wmma and values by scalars."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import attention, halves


def _case(heads: int, length: int) -> Case:
    q, k, v = halves(length, 3, heads, length, 64)
    args = (In(q), In(k), In(v), Out(q.shape, "float16"), np.int32(length), np.float32(0.125))
    padded = -(-length // 16) * 16
    shared = 2 * 64 * (16 + padded) + 4 * 16 * padded + 4 * 16
    grid, expected = (-(-length // 16), heads, 1), {3: attention(q, k, v)}
    return Case(
        f"s{length}",
        "attention_wmma",
        grid,
        (128, 1, 1),
        args,
        expected,
        1e-3,
        2e-3,
        Close(1e-3, 2e-3),
        shared,
    )


def cases() -> list[Case]:
    """Keys that need padding, and keys that do not."""
    return [_case(2, 33), _case(2, 64), _case(1, 100)]
