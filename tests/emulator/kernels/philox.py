"""Philox random numbers and normal numbers made of them."""

import numpy as np

from tests.emulator.corpus import Case, Close, Out


def cases() -> list[Case]:
    return [_case("odd_size", 301, 1, 2), _case("large_seed", 64, 0xDEADBEEF, 0xFFFFFFFF)]


def _case(name: str, n: int, low: int, high: int) -> Case:
    c = np.stack([np.arange(n), np.zeros(n), np.full(n, 7), np.zeros(n)]).astype(np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    for step in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        key = (
            np.uint64((low + step * 0x9E3779B9) & 0xFFFFFFFF),
            np.uint64((high + step * 0xBB67AE85) & 0xFFFFFFFF),
        )
        shift = np.uint64(32)
        c = np.stack(
            [
                (second >> shift) ^ c[1] ^ key[0],
                second & mask,
                (first >> shift) ^ c[3] ^ key[1],
                first & mask,
            ]
        )
    u = (c[0] >> np.uint64(8)) * 2.0**-24 + 2.0**-25
    angle = (c[1] >> np.uint64(8)) * 2.0**-23 * np.pi
    normal = np.sqrt(-2 * np.log(u)) * np.stack([np.sin(angle), np.cos(angle)])
    args = (
        Out((n, 4), "uint32"),
        Out((n, 2), "float32"),
        np.uint32(low),
        np.uint32(high),
        np.int32(n),
    )
    return Case(
        name,
        "philox",
        (-(-n // 128), 1, 1),
        (128, 1, 1),
        args,
        {0: c.T.astype(np.uint32), 1: normal.T},
        atol=2e-6,
        rtol=1e-5,
        gpu=Close(atol=1e-6, rtol=1e-6),
    )
