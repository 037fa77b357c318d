"""A linear layer with bias and relu over odd sides."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, weights, bias = halves(m, m, k), halves(n, n, k), halves(k, n)
    expected = np.maximum(product(a, weights.T) + bias.astype(np.float64), 0)
    args = (
        In(a),
        In(weights),
        In(bias),
        Out((m, n), "float16"),
        np.int32(m),
        np.int32(n),
        np.int32(k),
    )
    grid = (-(-n // 32), -(-m // 8), 1)
    return Case(
        name,
        "matmul_bias",
        grid,
        (16, 8, 1),
        args,
        {3: expected},
        atol=2e-3,
        rtol=2e-3,
        gpu=Close(1e-3, 2e-3),
    )


def cases() -> list[Case]:
    """One row with one column too many, and several blocks."""
    return [_case("one_row", 1, 3, 7), _case("odd_sides", 19, 67, 45)]
