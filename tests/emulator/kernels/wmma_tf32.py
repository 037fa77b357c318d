"""wmma 16x16x8 on tf32."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import floats, product
from tests.emulator.narrow_formats import tf32


def cases() -> list[Case]:
    """Six tiles, with a K that is a multiple of 8 only."""
    m, n, k = 32, 48, 56
    a, b = floats(1, m, k), floats(2, k, n)
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(n), np.int32(k))
    expected = {2: product(tf32(a), tf32(b))}
    return [
        Case(
            "tiles",
            "wmma_tf32",
            (3, 2, 1),
            (32, 1, 1),
            args,
            expected,
            atol=1e-4,
            rtol=1e-5,
            gpu=Close(1e-4, 1e-5),
        )
    ]
