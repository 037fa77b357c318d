"""Products of 8-bit integers by __dp4a, signed and unsigned."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out


def _case(name: str, kernel: str, low: int, high: int, m: int, n: int, k: int) -> Case:
    rng = np.random.default_rng(k)
    a, b = rng.integers(low, high, (m, k)), rng.integers(low, high, (n, k))
    stored, out = (np.int8, "int32") if low < 0 else (np.uint8, "uint32")
    args = (
        In(a.astype(stored)),
        In(b.astype(stored)),
        Out((m, n), out),
        np.int32(m),
        np.int32(n),
        np.int32(k // 4),
    )
    return Case(
        name, kernel, (-(-n // 16), -(-m // 8), 1), (16, 8, 1), args, {2: (a @ b.T).astype(out)}
    )


def cases() -> list[Case]:
    """Sides that leave threads without work."""
    return [
        _case("signed", "dp4a_matmul", -128, 128, 19, 33, 44),
        _case("unsigned", "dp4a_unsigned", 0, 256, 9, 17, 20),
    ]
