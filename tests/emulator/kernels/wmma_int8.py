"""wmma on signed bytes."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    """The full range of bytes; sums are exact."""
    m, n, k = 32, 48, 64
    rng = np.random.default_rng(1)
    a, b = (
        rng.integers(-128, 128, (m, k)).astype(np.int8),
        rng.integers(-128, 128, (n, k)).astype(np.int8),
    )
    args = (In(a), In(b), Out((m, n), "int32"), np.int32(n), np.int32(k))
    expected = {2: (a.astype(np.int64) @ b.T.astype(np.int64)).astype(np.int32)}
    return [Case("tiles", "wmma_int8", (3, 2, 1), (32, 1, 1), args, expected)]
