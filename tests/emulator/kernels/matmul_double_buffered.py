"""A matrix product whose tiles arrive by cp.async while the last ones are multiplied."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b = halves(m, m, k), halves(n, k, n)
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(m), np.int32(n), np.int32(k))
    grid, expected = (-(-n // 32), -(-m // 32), 1), {2: product(a, b)}
    return Case(
        name,
        "matmul_double_buffered",
        grid,
        (128, 1, 1),
        args,
        expected,
        atol=1e-4,
        rtol=1e-5,
        gpu=Close(1e-4, 1e-5),
    )


def cases() -> list[Case]:
    """One step without a successor, whole tiles, and sides that end within a tile."""
    return [
        _case("one_step", 32, 32, 24),
        _case("whole", 32, 64, 128),
        _case("partial", 45, 40, 104),
    ]
