"""Votes and matches over warps and parts of them."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 300, 64), _case("one_warp", 32, 32)]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(0, 100, n, dtype=np.int32)
    padded = np.full(-(-n // block) * block, -1, np.int32)
    padded[:n] = x
    rows = [row for start in range(0, padded.size, 32) for row in _warp(padded[start : start + 32])]
    args = (In(x), Out((n, 8), "uint32"), np.int32(n))
    return Case(
        name,
        "warp_votes",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        args,
        {1: np.array(rows, np.uint32)[:n]},
    )


def _warp(v: np.ndarray) -> list[list[int]]:
    rows = []
    for lane in range(32):
        whole = [
            int((v > 90).any()),
            int((v >= 0).all()),
            _mask(v & 1),
            _mask(v >> 4 == v[lane] >> 4),
            0xFFFFFFFF,
            1,
        ]
        if lane < 20:
            part = [_mask(v[:20] > 50), int((v[:20] < 99).all()) | int((v[:20] == 7).any()) << 1]
        else:
            thirds = [int(item) % 2**64 % 3 for item in v]
            part = [_mask(np.array([k >= 20 and thirds[k] == thirds[lane] for k in range(32)])), 12]
        rows.append(whole + part)
    return rows


def _mask(flags: np.ndarray) -> int:
    return sum(1 << k for k, flag in enumerate(flags) if flag)
