"""Blocks of a single thread."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("many_blocks", 101, 7),
        _case("one_block", 5, 1),
        _case("a_block_an_element", 40, 40),
    ]


def _case(name: str, n: int, blocks: int) -> Case:
    x = np.random.default_rng(n).integers(-1000, 1000, n) / 8
    expected = np.array([x[block::blocks].sum() for block in range(blocks)])
    args = (In(x), Out(blocks, "float64"), np.int32(n))
    return Case(name, "single_thread_block", (blocks, 1, 1), (1, 1, 1), args, {1: expected})
