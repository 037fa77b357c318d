"""wmma 16x16x16 on halves with float sums."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int, warps: int) -> Case:
    a, b = halves(m, m, k), halves(n, k, n)
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(m), np.int32(n), np.int32(k))
    grid, block = (-(-n // (16 * warps)), m // 16, 1), (32 * warps, 1, 1)
    return Case(
        name,
        "wmma_half",
        grid,
        block,
        args,
        {2: product(a, b)},
        atol=1e-4,
        rtol=1e-5,
        gpu=Close(1e-4, 1e-5),
    )


def cases() -> list[Case]:
    """One warp a block, and four of which some find no tile."""
    return [_case("one_warp", 16, 16, 16, 1), _case("idle_warps", 48, 96, 80, 4)]
