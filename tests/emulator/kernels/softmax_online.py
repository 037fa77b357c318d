"""Softmax with an online maximum and sum, pairs in shuffles and structs in shared memory."""

import numpy as np

from tests.emulator.corpus import Case, In, Out, Ulp


def cases() -> list[Case]:
    return [_case("odd_size", 3, 1001, 128), _case("one_warp", 4, 31, 32)]


def _case(name: str, rows: int, cols: int, block: int) -> Case:
    x = (np.random.default_rng(cols).standard_normal((rows, cols)) * 3).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    return Case(
        name,
        "softmax_online",
        (rows, 1, 1),
        (block, 1, 1),
        (In(x), Out((rows, cols), "float32"), np.int32(cols)),
        {1: e / e.sum(1, keepdims=True)},
        atol=1e-7,
        rtol=1e-5,
        gpu=Ulp(32),
    )
