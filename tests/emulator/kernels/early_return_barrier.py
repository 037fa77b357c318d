"""Barriers after whole warps have returned."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("eight_warps", 9, 256, 5), _case("two_warps", 3, 64, 1)]


def _case(name: str, blocks: int, block: int, rounds: int) -> Case:
    x = np.random.default_rng(blocks).integers(0, 100, (blocks, block)).astype(np.float32)
    expected = np.full_like(x, -1)
    for row in range(blocks):
        width = (row % (block // 32) + 1) * 32
        expected[row, :width] = np.roll(x[row, :width], -rounds) + rounds
    args = (In(x), Out((blocks, block), "float32"), np.int32(rounds))
    return Case(name, "early_return_barrier", (blocks, 1, 1), (block, 1, 1), args, {1: expected})
