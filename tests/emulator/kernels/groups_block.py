"""Cooperative groups: the block as a group, in three dimensions."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats


def _case(name: str, grid: tuple[int, int, int], block: tuple[int, int, int]) -> Case:
    size, blocks = int(np.prod(block)), int(np.prod(grid))
    x = floats(size, blocks, size)
    rank, row = np.arange(size)[None, :], (np.arange(blocks) // grid[0])[:, None]
    z = (rank + 1) % size // (block[0] * block[1])
    facts = (rank * 1000 + z * 100 + row * 10 + block[1]).astype(np.uint32)
    args = (In(x), Out(x.shape, "float32"), Out(x.shape, "uint32"))
    return Case(
        name, "groups_block", grid, block, args, {1: x[:, ::-1], 2: facts}, shared_bytes=4 * size
    )


def cases() -> list[Case]:
    """A flat block, and one of three dimensions that does not fill its last warp."""
    return [_case("flat", (2, 1, 1), (64, 1, 1)), _case("three_dimensions", (2, 3, 1), (5, 3, 3))]
