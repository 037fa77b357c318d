"""An inclusive scan of a whole array by one block: __shfl_up_sync and a carry from tile to tile."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("many_tiles", 3001, 256),
        _case("one_warp", 95, 32),
        _case("full_block", 1024, 1024),
    ]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(-1000, 1000, n, dtype=np.int32)
    args = (In(x), Out(n, "int32"), np.int32(n))
    return Case(
        name, "scan_warp_shuffle", (1, 1, 1), (block, 1, 1), args, {1: x.cumsum().astype(np.int32)}
    )
