"""The first matrix product that everybody writes, on halves."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b = halves(m, m, k), halves(n, k, n)
    args = (In(a), In(b), Out((m, n), "float16"), np.int32(m), np.int32(n), np.int32(k))
    grid, expected = (-(-n // 16), -(-m // 16), 1), {2: product(a, b)}
    return Case(
        name,
        "matmul_half_naive",
        grid,
        (16, 16, 1),
        args,
        expected,
        atol=2e-3,
        rtol=2e-3,
        gpu=Close(1e-3, 2e-3),
    )


def cases() -> list[Case]:
    """One element, and sides that no block divides."""
    return [_case("one", 1, 1, 5), _case("odd_sides", 21, 35, 50)]
