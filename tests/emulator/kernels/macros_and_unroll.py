"""Macros given at compile time."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("tile_4_plus", 501, 4, "+"),
        _case("tile_1_minus", 70, 1, "-"),
        _case("tile_7_xor", 100, 7, "^"),
    ]


def _case(name: str, n: int, tile: int, operation: str) -> Case:
    x = np.random.default_rng(n).integers(-100, 100, n, dtype=np.int32)
    padded = np.zeros(-(-n // tile) * tile, np.int32)
    padded[:n] = x
    tiles = padded.reshape(-1, tile)
    r = (tiles.cumsum(1) if tile > 2 else tiles) ** 2
    first = np.arange(len(tiles))[:, None] * tile
    y = {"+": r + first, "-": r - first, "^": r ^ first}[operation].astype(np.int32).reshape(-1)[:n]
    grid = (-(-n // (32 * tile)), 1, 1)
    args = (In(x), Out(n, "int32"), np.int32(n))
    return Case(
        name,
        "macros_and_unroll",
        grid,
        (32, 1, 1),
        args,
        {1: y},
        macros={"TILE": tile, "OPERATION": operation},
    )
