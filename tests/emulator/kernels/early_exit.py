"""Early returns out of loops and nested branches."""

import numpy as np

from tests.emulator.corpus import Case, In, InOut, Out


def cases() -> list[Case]:
    return [_case("odd_size", 333, 128), _case("block_of_40", 100, 40)]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(-30, 200, n, dtype=np.int32)
    target, found = 60, []
    out = np.array([_thread(int(v), i, target, found) for i, v in enumerate(x)], np.int32)
    args = (In(x), Out(n, "int32"), InOut(np.array([n], np.int32)), np.int32(n), np.int32(target))
    expected = {1: out, 2: np.array([min(found, default=n)], np.int32)}
    return Case(name, "early_exit", (-(-n // block), 1, 1), (block, 1, 1), args, expected)


def _thread(v: int, i: int, target: int, found: list[int]) -> int:
    out = -1
    if v < 0:
        return -v
    for k in range(20):
        if v % 7 == 3:
            out = 1000 + k
            if v & 1:
                return out
            out += 1000
            if v > 50:
                found.append(i)
                return out
        if v == target:
            return 77
        v += i & 3
    return out + v
