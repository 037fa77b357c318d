"""Blocks and grids in three dimensions with odd sizes."""

import numpy as np

from tests.emulator.corpus import Case, Out


def cases() -> list[Case]:
    return [
        _case("5x7x3", (5, 7, 3), (13, 20, 4)),
        _case("1x1x9", (1, 1, 9), (3, 2, 9)),
        _case("33x2x2", (33, 2, 2), (40, 3, 5)),
    ]


def _case(name: str, block: tuple[int, int, int], size: tuple[int, int, int]) -> Case:
    grid = tuple(-(-n // b) for n, b in zip(size, block, strict=True))
    z, y, x = np.meshgrid(*(np.arange(n) for n in size[::-1]), indexing="ij")
    tz = z % block[2]
    above = z - tz + (tz + 1) % block[2]
    thread = x % block[0] + block[0] * (y % block[1] + block[1] * tz)
    lanes = thread + 1000 * grid[0] + 10000 * grid[1] + 100000 * grid[2]
    expected = {0: x + 100 * y + 10000 * z, 1: x + 100 * y + 10000 * above, 2: lanes}
    kinds = {0: np.int32, 1: np.int32, 2: np.uint32}
    args = (
        *(Out(x.shape, kind) for kind in ("int32", "int32", "uint32")),
        *(np.int32(n) for n in size),
    )
    return Case(
        name,
        "odd_blocks_3d",
        (grid[0], grid[1], grid[2]),
        block,
        args,
        {index: array.astype(kinds[index]) for index, array in expected.items()},
        shared_bytes=4 * int(np.prod(block)),
    )
