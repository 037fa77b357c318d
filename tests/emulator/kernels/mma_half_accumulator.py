"""mma.sync m16n8k16 with sums in half."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def cases() -> list[Case]:
    """Two warps a block; the sums are rounded to half after every step."""
    m, n, k = 32, 48, 64
    a, b, bias = halves(1, m, k, scale=0.5), halves(2, n, k, scale=0.5), halves(3, n)
    args = (In(a), In(b), In(bias), Out((m, n), "float16"), np.int32(n), np.int32(k))
    expected = {3: product(a, b.T) + bias.astype(np.float64)}
    return [
        Case(
            "bias",
            "mma_half_accumulator",
            (3, 2, 1),
            (64, 1, 1),
            args,
            expected,
            atol=0.02,
            rtol=5e-3,
            gpu=Close(0.02, 5e-3),
        )
    ]
