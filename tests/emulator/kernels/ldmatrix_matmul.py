"""A matrix product from swizzled shared memory: ldmatrix x4, x2 transposed, mma.sync."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b = halves(m, m, k), halves(n, k, n)
    args = (In(a), In(b), Out((m, n), "float16"), np.int32(m), np.int32(n), np.int32(k))
    grid, expected = (-(-n // 32), -(-m // 32), 1), {2: product(a, b)}
    return Case(
        name,
        "ldmatrix_matmul",
        grid,
        (128, 1, 1),
        args,
        expected,
        atol=4e-3,
        rtol=2e-3,
        gpu=Close(2e-3, 2e-3),
    )


def cases() -> list[Case]:
    """Whole tiles, and sides that end within one."""
    return [_case("whole", 64, 32, 128), _case("partial", 43, 72, 88)]
