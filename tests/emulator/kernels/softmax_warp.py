"""Softmax, one warp a row, rows whose length is no multiple of 32."""

import numpy as np

from tests.emulator.corpus import Case, In, Out, Ulp


def cases() -> list[Case]:
    return [
        _case("whole", 8, 128, 4),
        _case("odd_sizes", 7, 45, 2),
        _case("shorter_than_a_warp", 3, 5, 1),
    ]


def _case(name: str, rows: int, cols: int, per_lane: int) -> Case:
    x = (np.random.default_rng(cols).standard_normal((rows, cols)) * 4).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    return Case(
        name,
        f"softmax_warp<{per_lane}>",
        (-(-rows // 4), 1, 1),
        (32, 4, 1),
        (In(x), Out((rows, cols), "float32"), np.int32(rows), np.int32(cols)),
        {1: e / e.sum(1, keepdims=True)},
        atol=1e-7,
        rtol=5e-6,
        gpu=Ulp(16),
    )
