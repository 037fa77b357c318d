"""Barriers after some lanes of a warp have returned, in the last block and then in every warp."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("odd_size", 300, 128),
        _case("three_threads_left", 67, 64),
        _case("odd_block", 130, 45),
    ]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(-1000, 1000, n, dtype=np.int32)
    out = np.empty_like(x)
    for start in range(0, n, block):
        mirrored = x[start : start + block][::-1]
        thread = np.arange(mirrored.size)
        before = np.where(thread % 3 == 2, mirrored[np.maximum(thread - 2, 0)], 5)
        out[start : start + block] = np.where(thread % 3 == 1, mirrored * 2, mirrored + before)
    args = (In(x), Out(n, "int32"), np.int32(n))
    return Case(
        name, "early_return_partial_warp", (-(-n // block), 1, 1), (block, 1, 1), args, {1: out}
    )
