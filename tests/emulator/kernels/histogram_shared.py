"""A histogram by atomics on shared memory."""

import numpy as np

from tests.emulator.corpus import Case, In, InOut


def cases() -> list[Case]:
    return [_case("many_blocks", 2050, 5, 128), _case("fewer_threads_than_bins", 99, 2, 24)]


def _case(name: str, n4: int, blocks: int, block: int) -> Case:
    data = np.random.default_rng(n4).integers(0, 256, (n4, 4), dtype=np.uint8)
    expected = np.bincount(data.reshape(-1) >> 2, minlength=64).astype(np.uint32)
    args = (In(data), InOut(np.zeros(64, np.uint32)), np.int32(n4))
    return Case(name, "histogram_shared", (blocks, 1, 1), (block, 1, 1), args, {1: expected})
