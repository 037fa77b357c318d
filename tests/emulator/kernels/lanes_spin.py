"""Lanes of one warp that spin for different times, and meet in an exchange between all of them."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("one_block", 1), _case("five_blocks", 5)]


def _case(name: str, blocks: int) -> Case:
    x = np.random.default_rng(blocks).integers(1, 100, (blocks, 32), dtype=np.int32)
    out = np.repeat(x.sum(axis=1, keepdims=True, dtype=np.int32) + 8, 32, axis=1)
    args = (In(x), Out(x.shape, "int32"))
    return Case(name, "lanes_spin", (blocks, 1, 1), (96, 1, 1), args, {1: out}, ordered_by="flag")
