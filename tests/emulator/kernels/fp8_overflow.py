"""float32 to e4m3 and e5m2 without saturation."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.narrow_formats import E4M3, E5M2, special_floats


def cases() -> list[Case]:
    """Values around every limit."""
    x = special_floats()
    args = (In(x), Out(x.size, "float8_e4m3"), Out(x.size, "float8_e5m2"), np.int32(x.size))
    wide = x.astype(np.float64)
    return [
        Case(
            "special",
            "fp8_overflow",
            (1, 1, 1),
            (96, 1, 1),
            args,
            {1: E4M3.encode(wide), 2: E5M2.encode(wide)},
            arch="sm_89",
        )
    ]
