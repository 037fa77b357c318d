"""Static and dynamic shared memory with several types in one pool."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("two_warps", 3, 64, 200), _case("odd_sizes", 2, 70, 101)]


def _case(name: str, blocks: int, block: int, per_block: int) -> Case:
    x = np.random.default_rng(block).standard_normal((blocks, per_block)).astype(np.float32)
    kept = np.where(x[:, ::-1] > 0, x, 0).astype(np.float64)
    sums = np.stack([kept[:, t::block].sum(1) for t in range(block)], 1)
    t = np.arange(block)
    expected = sums[:, (63 - (t & 63)) % block] + (t & 63) * 0.25 + 0.0
    expected -= (t & 63) * 0.25 - ((t & 63) // 4 + (t & 3) * 0.25)
    args = (In(x), Out((blocks, block), "float64"), np.int32(per_block))
    size = 8 * block + 5 * per_block
    return Case(
        name,
        "mixed_shared",
        (blocks, 1, 1),
        (block, 1, 1),
        args,
        {1: expected},
        atol=1e-12,
        rtol=1e-12,
        shared_bytes=size,
    )
