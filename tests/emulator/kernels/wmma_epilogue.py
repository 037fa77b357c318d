"""wmma over sides of any length, with bias and gelu after a pass through shared memory."""

from __future__ import annotations

import math

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b, bias = halves(m, m, k, scale=0.3), halves(n, k, n, scale=0.3), halves(k, n)
    x = product(a, b) + bias.astype(np.float64)
    expected = 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    args = (In(a), In(b), In(bias), Out((m, n), "float16"), np.int32(m), np.int32(n), np.int32(k))
    grid = (-(-n // 64), -(-m // 16), 1)
    return Case(
        name,
        "wmma_epilogue",
        grid,
        (128, 1, 1),
        args,
        {3: expected},
        atol=2e-3,
        rtol=2e-3,
        gpu=Close(1e-3, 2e-3),
    )


def cases() -> list[Case]:
    """A tile hardly used, and sides that end within one."""
    return [_case("tiny", 1, 5, 3), _case("odd_sides", 37, 101, 43)]
