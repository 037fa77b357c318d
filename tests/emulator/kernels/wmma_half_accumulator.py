"""wmma with sums kept in half."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b, c = halves(m, m, k, scale=0.5), halves(n, n, k, scale=0.5), halves(k, n, m)
    expected = product(b, a.T) + c.astype(np.float64)
    args = (In(a), In(b), In(c), Out((n, m), "float16"), np.int32(m), np.int32(n), np.int32(k))
    grid = (n // 16, m // 16, 1)
    return Case(
        name,
        "wmma_half_accumulator",
        grid,
        (32, 1, 1),
        args,
        {3: expected},
        atol=0.02,
        rtol=5e-3,
        gpu=Close(0.02, 5e-3),
    )


def cases() -> list[Case]:
    """One step, and several over more tiles than one."""
    return [_case("one_step", 16, 16, 16), _case("tiles", 32, 48, 64)]
