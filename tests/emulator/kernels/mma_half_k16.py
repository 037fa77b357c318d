"""mma.sync m16n8k16 on halves with float sums."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b = halves(m, m, k), halves(n, n, k)
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(m), np.int32(n), np.int32(k))
    grid, expected = (n // 8, m // 16, 1), {2: product(a, b.T)}
    return Case(
        name,
        "mma_half_k16",
        grid,
        (32, 1, 1),
        args,
        expected,
        atol=1e-4,
        rtol=1e-5,
        gpu=Close(1e-4, 1e-5),
    )


def cases() -> list[Case]:
    """One instruction, and several over more tiles than one."""
    return [_case("one", 16, 8, 16), _case("tiles", 48, 40, 96)]
