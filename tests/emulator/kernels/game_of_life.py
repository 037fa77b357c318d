"""The game of life on a torus: shared bytes written and read by different threads."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_sizes", 53, 21, (16, 8)), _case("odd_block", 20, 20, (7, 3))]


def _case(name: str, width: int, height: int, block: tuple[int, int]) -> Case:
    x = (np.random.default_rng(width).random((height, width)) < 0.4).astype(np.uint8)
    around = sum(np.roll(x, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - x
    expected = ((around == 3) | ((around == 2) & (x == 1))).astype(np.uint8)
    args = (In(x), Out(x.shape, "uint8"), np.int32(width), np.int32(height))
    grid = (-(-width // block[0]), -(-height // block[1]), 1)
    size = (block[0] + 2) * (block[1] + 2)
    return Case(name, "game_of_life", grid, (*block, 1), args, {1: expected}, shared_bytes=size)
