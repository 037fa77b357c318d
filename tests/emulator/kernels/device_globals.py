"""__device__ variables with initialisers, one that points at another."""

import numpy as np

from tests.emulator.corpus import Case, InOut, Out


def cases() -> list[Case]:
    return [_case("odd_size", 299, 64), _case("one_warp", 32, 32)]


def _case(name: str, n: int, block: int) -> Case:
    i = np.arange(n)
    numbers = np.array([3, 1, 4, 1, 5, 9])
    a = (
        numbers[i % 6]
        + 10 * numbers[2 + i % 4]
        + 1000 * np.frombuffer(b"device", np.uint8)[i % 6].astype(int)
    )
    args = (
        Out(n, "int32"),
        Out(n, "float32"),
        Out(n, "float64"),
        InOut(np.zeros(1, np.uint64)),
        np.int32(n),
    )
    last = np.array([10**12 + 3 * (n - 1)], np.uint64)
    expected = {
        0: a.astype(np.int32),
        1: (6 + i).astype(np.float32),
        2: np.full(n, -2.5 * ord("z")),
        3: last,
    }
    return Case(name, "device_globals", (-(-n // block), 1, 1), (block, 1, 1), args, expected)
