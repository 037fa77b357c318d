"""Partial sums by warp shuffles."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("grid_stride", 10_007, 4, 256),
        _case("one_warp", 33, 1, 32),
        _case("more_threads_than_elements", 100, 3, 64),
    ]


def _case(name: str, n: int, blocks: int, block: int) -> Case:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    owner = np.arange(n) // block % blocks
    sums = np.bincount(owner, weights=x.astype(np.float64), minlength=blocks)
    args = (In(x), Out(blocks, "float32"), np.int32(n))
    return Case(
        name, "reduce_shuffle", (blocks, 1, 1), (block, 1, 1), args, {1: sums}, atol=2e-5, rtol=1e-5
    )
