"""A matrix product over tiles in shared memory, with guards on all sides."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b = halves(m, m, k), halves(n, k, n)
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(m), np.int32(n), np.int32(k))
    grid, expected = (-(-n // 16), -(-m // 16), 1), {2: product(a, b)}
    return Case(
        name,
        "matmul_half_tiled",
        grid,
        (16, 16, 1),
        args,
        expected,
        atol=1e-4,
        rtol=1e-5,
        gpu=Close(1e-4, 1e-5),
    )


def cases() -> list[Case]:
    """Whole tiles, and sides that no tile divides."""
    return [_case("whole", 32, 48, 64), _case("odd_sides", 45, 17, 39)]
