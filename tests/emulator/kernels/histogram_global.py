"""A histogram of bytes by atomics on global memory, added to what was there."""

import numpy as np

from tests.emulator.corpus import Case, In, InOut


def cases() -> list[Case]:
    return [_case("odd_size", 5001, 3, 128, 256), _case("all_in_one_bin", 777, 2, 96, 1)]


def _case(name: str, n: int, blocks: int, block: int, used: int) -> Case:
    data = np.random.default_rng(n).integers(0, used, n, dtype=np.uint8)
    start = np.arange(256, dtype=np.uint32)
    expected = (start + np.bincount(data, minlength=256)).astype(np.uint32)
    args = (In(data), InOut(start), np.uint64(n))
    return Case(name, "histogram_global", (blocks, 1, 1), (block, 1, 1), args, {1: expected})
