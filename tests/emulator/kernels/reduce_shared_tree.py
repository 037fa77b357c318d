"""Partial sums by a tree in dynamic shared memory."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("exact_fit", 2048, 256),
        _case("odd_size", 1777, 128),
        _case("one_warp", 50, 32),
        _case("below_a_warp", 71, 16),
    ]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    blocks = -(-n // (2 * block))
    padded = np.zeros(blocks * 2 * block)
    padded[:n] = x
    return Case(
        name,
        "reduce_shared_tree",
        (blocks, 1, 1),
        (block, 1, 1),
        (In(x), Out(blocks, "float32"), np.int32(n)),
        {1: padded.reshape(blocks, -1).sum(1)},
        atol=1e-5,
        rtol=1e-5,
        shared_bytes=4 * block,
    )
