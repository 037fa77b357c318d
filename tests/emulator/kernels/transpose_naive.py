"""A transpose straight from global to global memory."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("square", 64, 64, (16, 16)),
        _case("odd_sizes", 37, 53, (16, 16)),
        _case("odd_block", 45, 20, (7, 5)),
    ]


def _case(name: str, rows: int, cols: int, block: tuple[int, int]) -> Case:
    x = np.random.default_rng(rows).standard_normal((rows, cols)).astype(np.float32)
    grid = (-(-cols // block[0]), -(-rows // block[1]), 1)
    args = (In(x), Out((cols, rows), "float32"), np.int32(rows), np.int32(cols))
    return Case(name, "transpose_naive", grid, (*block, 1), args, {1: x.T})
