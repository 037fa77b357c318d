"""Sums and extremes by atomics on shared and global memory; the order of floating additions is
open.
"""

import numpy as np

from tests.emulator.corpus import Case, Close, In, InOut


def cases() -> list[Case]:
    return [_case("odd_size", 1000, 96), _case("one_thread_a_block", 17, 1)]


def _case(name: str, n: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    x = rng.standard_normal(n).astype(np.float32)
    k = rng.integers(-1_000_000, 1_000_000, n, dtype=np.int32)
    limits = np.iinfo(np.int32)
    start = np.array([5, limits.max, limits.min, 0], np.int32)
    integers = np.array([5 + int(k.sum()), k.min(), k.max(), np.bitwise_xor.reduce(k)], np.int32)
    total = x.sum(dtype=np.float64)
    return Case(
        name,
        "reduce_atomics",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        (
            In(x),
            In(k),
            InOut(np.zeros(1, np.float32)),
            InOut(start),
            InOut(np.zeros(1)),
            np.int32(n),
        ),
        {2: np.array([total]), 3: integers, 4: np.array([total])},
        atol=5e-5,
        rtol=1e-5,
        gpu=Close(atol=5e-5, rtol=1e-5),
    )
