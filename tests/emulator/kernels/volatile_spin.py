"""Spinning on a volatile flag between the warps of a block, in an order that lets every warp
run.
"""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("eight_warps", 3, 8), _case("two_warps", 1, 2)]


def _case(name: str, blocks: int, warps: int) -> Case:
    x = np.random.default_rng(warps).integers(0, 100, (blocks, warps), dtype=np.int32)
    out, value = np.empty_like(x), np.ones(blocks, np.int32)
    for warp in range(warps):
        value = value * 3 + x[:, warp]
        out[:, warp] = value
    args = (In(x), Out(x.shape, "int32"))
    return Case(
        name, "volatile_spin", (blocks, 1, 1), (32 * warps, 1, 1), args, {1: out}, ordered_by="flag"
    )
