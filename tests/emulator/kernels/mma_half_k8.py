"""mma.sync m16n8k8 on halves, over sides of any length."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b = halves(m, m, k), halves(n, n, k)
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(m), np.int32(n), np.int32(k))
    grid, expected = (-(-n // 8), -(-m // 16), 1), {2: product(a, b.T)}
    return Case(
        name,
        "mma_half_k8",
        grid,
        (32, 1, 1),
        args,
        expected,
        atol=1e-4,
        rtol=1e-5,
        gpu=Close(1e-4, 1e-5),
    )


def cases() -> list[Case]:
    """One instruction, and sides that end within a tile."""
    return [_case("one", 16, 8, 8), _case("odd_sides", 37, 19, 29)]
