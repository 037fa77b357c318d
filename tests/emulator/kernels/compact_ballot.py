"""Stream compaction by ballot and popc, with %lanemask_lt."""

import numpy as np

from tests.emulator.corpus import Case, In, InOut, Out


def cases() -> list[Case]:
    return [_case("odd_size", 1000, 128), _case("one_warp", 30, 32)]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(-10, 10, n, dtype=np.int32)
    blocks = -(-n // block)
    kept, counts = np.full((blocks, block), -1, np.int32), np.zeros(blocks, np.int32)
    for row in range(blocks):
        part = x[row * block : (row + 1) * block]
        counts[row] = (part > 0).sum()
        kept[row, : counts[row]] = part[part > 0]
    args = (In(x), InOut(np.full((blocks, block), -1, np.int32)), Out(blocks, "int32"), np.int32(n))
    return Case(name, "compact_ballot", (blocks, 1, 1), (block, 1, 1), args, {1: kept, 2: counts})
