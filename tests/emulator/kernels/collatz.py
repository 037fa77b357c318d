"""The Collatz problem in 64 bits: trip counts that nobody knows beforehand."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("from_one", np.arange(1, 200)),
        _case("large", np.array([837799, 626331, 4294967295, 77031, 1, 2, 3])),
    ]


def _case(name: str, numbers: np.ndarray) -> Case:
    start = numbers.astype(np.uint32)
    walks = [_walk(int(number)) for number in start]
    args = (In(start), Out(start.shape, "uint32"), Out(start.shape, "uint64"), np.int32(start.size))
    expected = {
        1: np.array([item[0] for item in walks], np.uint32),
        2: np.array([item[1] for item in walks], np.uint64),
    }
    return Case(name, "collatz", (-(-start.size // 64), 1, 1), (64, 1, 1), args, expected)


def _walk(number: int) -> tuple[int, int]:
    steps, top = 0, number
    while number != 1:
        number = 3 * number + 1 if number % 2 else number // 2
        steps, top = steps + 1, max(top, number)
    return steps, top
