"""fp8 numbers by their classes, alone and in fours."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import E4M3, E5M2


def cases() -> list[Case]:
    """Random numbers of a size that overflows now and then."""
    n = 500
    a, b = (
        E4M3.encode(floats(1, n, scale=40.0), saturate=True),
        E5M2.encode(floats(2, n, scale=10.0), saturate=True),
    )
    x, y = E4M3.decode(a), E5M2.decode(b)
    fours = np.stack([x, -x, 2 * x, y], axis=1)[::4]
    outputs = (Out(n, "float8_e4m3"), Out((n // 4, 4), "float32"), Out(n, "float16"))
    args = (In(a, "float8_e4m3"), In(b, "float8_e5m2"), *outputs, np.int32(n))
    expected = {
        2: E4M3.encode(x * y, saturate=True),
        3: E4M3.decode(E4M3.encode(fours, saturate=True)),
        4: x,
    }
    return [Case("random", "fp8_classes", (4, 1, 1), (128, 1, 1), args, expected, arch="sm_89")]
