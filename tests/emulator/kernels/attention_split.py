"""Attention whose keys are split over blocks that meet in atomics."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, InOut, Out
from tests.emulator.float64_references import attention, halves


def _case(heads: int, length: int, splits: int) -> Case:
    q, k, v = halves(length, 3, heads, length, 64, scale=0.7)
    result = attention(q, k, v)
    weights = np.exp(q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * 0.125)
    sums = weights.sum(axis=2)
    numerator, denominator = np.zeros(q.shape, np.float32), np.zeros((heads, length), np.float32)
    arrived = np.zeros((heads, length), np.int32)
    keys = -(-length // splits)
    buffers = (InOut(numerator), InOut(denominator), InOut(arrived), Out(q.shape, "float32"))
    args = (In(q), In(k), In(v), *buffers, np.int32(length), np.int32(keys), np.float32(0.125))
    expected = {
        3: result * sums[:, :, None],
        4: sums,
        5: np.full((heads, length), splits, np.int32),
        6: result,
    }
    grid = (length, heads, splits)
    return Case(
        f"s{length}",
        "attention_split",
        grid,
        (64, 1, 1),
        args,
        expected,
        1e-3,
        1e-4,
        Close(1e-3, 1e-4),
    )


def cases() -> list[Case]:
    """Splits of the same size, and a last one that is shorter."""
    return [_case(2, 33, 3), _case(1, 50, 4)]
