"""Softmax, one block a row, with the fast exponential."""

import numpy as np

from tests.emulator.corpus import Case, In, Out, Ulp


def cases() -> list[Case]:
    return [
        _case("odd_size", 5, 777, 128),
        _case("fewer_columns_than_threads", 2, 19, 64),
        _case("one_column", 4, 1, 32),
    ]


def _case(name: str, rows: int, cols: int, block: int) -> Case:
    x = (np.random.default_rng(cols).standard_normal((rows, cols)) * 4).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    return Case(
        name,
        "softmax_block",
        (rows, 1, 1),
        (block, 1, 1),
        (In(x), Out((rows, cols), "float32"), np.int32(cols)),
        {1: e / e.sum(1, keepdims=True)},
        atol=1e-7,
        rtol=1e-5,
        gpu=Ulp(16),
        shared_bytes=4 * block,
    )
