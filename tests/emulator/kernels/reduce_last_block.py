"""A whole sum in one launch: the last block, told by an atomic counter after a fence, adds the
partial sums.
"""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("odd_size", 20_003, 7, 128),
        _case("one_block", 1023, 1, 64),
        _case("more_blocks_than_threads", 9_999, 70, 64),
    ]


def _case(name: str, n: int, blocks: int, block: int) -> Case:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    wide = x.astype(np.float64)
    owner = np.arange(n) // 4 // block % blocks
    owner[n // 4 * 4 :] = 0
    return Case(
        name,
        f"reduce_last_block<{block}>",
        (blocks, 1, 1),
        (block, 1, 1),
        (In(x), Out(blocks, "float32"), Out(1, "float32"), np.int32(n)),
        {1: np.bincount(owner, weights=wide, minlength=blocks), 2: wide.sum(keepdims=True)},
        atol=1e-4,
        rtol=1e-5,
        ordered_by="fence",
    )
