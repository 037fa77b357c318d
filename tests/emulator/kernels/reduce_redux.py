"""redux.sync in its six kinds, signed and unsigned, also over a part of the warp."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("whole_warps", 512, 128), _case("last_warp_in_part", 301, 64)]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(0, 1 << 32, n, dtype=np.uint32) | np.uint32(4)
    rows = []
    for start in range(0, n, 32):
        warp = x[start : start + 32]
        signed = warp.view(np.int32)
        rows.append(
            [
                int(warp.sum(dtype=np.uint64)) & 0xFFFFFFFF,
                warp.min(),
                warp.max(),
                np.bitwise_and.reduce(warp),
                np.bitwise_or.reduce(warp),
                np.bitwise_xor.reduce(warp),
                int(signed.min()) & 0xFFFFFFFF,
                int(signed.max()) & 0xFFFFFFFF,
            ]
        )
    expected = np.array(rows, np.uint32)
    args = (In(x), Out(expected.shape, "uint32"), np.int32(n))
    return Case(name, "reduce_redux", (-(-n // block), 1, 1), (block, 1, 1), args, {1: expected})
