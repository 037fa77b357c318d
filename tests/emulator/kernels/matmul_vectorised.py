"""A matrix product with 16-byte loads from global and shared memory."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b = floats(m, m, k), floats(n, k, n)
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(m), np.int32(n), np.int32(k))
    grid = (-(-n // 32), -(-m // 32), 1)
    return Case(
        name, "matmul_vectorised", grid, (8, 32, 1), args, {2: product(a, b)}, atol=1e-4, rtol=1e-5
    )


def cases() -> list[Case]:
    """One block, and sides that are multiples of four only."""
    return [_case("one_block", 32, 32, 32), _case("fours", 37, 52, 76)]
