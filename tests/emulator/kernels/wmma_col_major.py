"""wmma with both operands by columns and an epilogue over the elements of fragments."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import floats, halves, product


def cases() -> list[Case]:
    """Scaled, added to C, and cut at zero."""
    m, n, k, alpha, beta = 48, 32, 64, 0.25, -1.5
    a, b, c = halves(1, k, m), halves(2, n, k), floats(3, m, n)
    expected = np.maximum(alpha * product(a.T, b.T) + beta * c.astype(np.float64), 0)
    sizes = (np.int32(m), np.int32(n), np.int32(k), np.float32(alpha), np.float32(beta))
    args = (In(a), In(b), In(c), Out((m, n), "float32"), *sizes)
    return [
        Case(
            "relu",
            "wmma_col_major",
            (2, 3, 1),
            (32, 1, 1),
            args,
            {3: expected},
            atol=1e-4,
            rtol=1e-5,
            gpu=Close(1e-4, 1e-5),
        )
    ]
