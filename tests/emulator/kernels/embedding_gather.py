"""Rows of a half table by 64-bit numbers, some of them out of range."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import halves


def cases() -> list[Case]:
    """21 rows of 40 halves from a table of 50."""
    table = halves(1, 50, 40)
    indices = np.random.default_rng(2).integers(-3, 55, 21)
    known = (indices >= 0) & (indices < 50)
    expected = np.where(known[:, None], table[np.where(known, indices, 0)], np.float16(0))
    args = (
        In(table),
        In(indices),
        Out(expected.shape, "float16"),
        np.int32(21),
        np.int32(5),
        np.int64(50),
    )
    return [Case("rows", "embedding_gather", (6, 1, 1), (8, 4, 1), args, {2: expected})]
