"""A lock by atomicCAS and atomicExch around plain accesses, taken by all warps of all blocks."""

import numpy as np

from tests.emulator.corpus import Case, InOut


def cases() -> list[Case]:
    return [_case("many_blocks", 5, 4), _case("one_block", 1, 8)]


def _case(name: str, blocks: int, warps: int) -> Case:
    count = blocks * warps
    args = (InOut(np.zeros(count, np.int32)), InOut(np.zeros(1, np.int32)))
    expected = {0: 100 + np.arange(count, dtype=np.int32), 1: np.array([count], np.int32)}
    return Case(
        name, "spin_lock", (blocks, 1, 1), (32 * warps, 1, 1), args, expected, ordered_by="lock"
    )
