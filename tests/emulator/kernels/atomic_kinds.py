"""All kinds of atomics on 32 and 64 bits."""

import numpy as np

from tests.emulator.corpus import Case, In, InOut


def cases() -> list[Case]:
    return [_case("odd_size", 300, 64), _case("one_warp", 20, 32)]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(0, 1 << 32, n, dtype=np.uint32)
    start = np.array([0xFFFFFFFF, 1, 0, 0xFFFFFFFF, 0, 0, 5, 0, 0, 0], np.uint32)
    down = 5
    for _ in range(n):
        down = 1000 if down == 0 else down - 1
    cells = np.array(
        [
            *(
                np.bitwise_and.reduce(x | 0xFF00),
                np.bitwise_or.reduce(x & 0x0FF0) | 1,
                np.bitwise_xor.reduce(x),
                x.min(),
                x.max(),
            ),
            *(n, down, -int(x.sum(dtype=np.int64)) % 2**32, x[17], n),
        ],
        np.uint32,
    )
    big = [int(v) for v in x]
    wide = np.array([sum(v << 20 for v in big), max(v * v for v in big), 12345], np.uint64)
    largest = np.array([(x.astype(np.float32) * np.float32(0.5)).max()])
    args = (
        *(
            In(x),
            InOut(start),
            InOut(np.zeros(3, np.uint64)),
            InOut(np.full(1, -1, np.float32)),
            InOut(np.zeros(n, np.uint8)),
        ),
        np.int32(n),
    )
    expected = {1: cells, 2: wide, 3: largest, 4: np.ones(n, np.uint8)}
    return Case(name, "atomic_kinds", (-(-n // block), 1, 1), (block, 1, 1), args, expected)
