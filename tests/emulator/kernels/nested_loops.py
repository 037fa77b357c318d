"""Nested divergent loops with break, continue and goto."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 500, 96), _case("one_warp", 20, 32)]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(0, 1000, n, dtype=np.int32)
    out = np.array([_thread(int(v), i) for i, v in enumerate(x)], np.int32)
    args = (In(x), Out(n, "int32"), np.int32(n))
    return Case(name, "nested_loops", (-(-n // block), 1, 1), (block, 1, 1), args, {1: out})


def _thread(v: int, i: int) -> int:
    acc, limit, a = 0, v & 15, -1
    while (a := a + 1) < limit:
        if a % 3 == 2:
            continue
        b = a
        while True:
            b += 2
            if b % 5 == 0:
                continue
            if b > limit + a:
                break
            acc += a * b
            if acc > 400:
                return acc
            acc += _inner(b, i)
        while True:
            acc ^= a
            limit -= acc & 1
            if not (acc % 4 == 3 and limit > 3):
                break
    return acc + 10000


def _inner(b: int, i: int) -> int:
    count = 0
    for c in range(b, 0, -3):
        if (c ^ i) & 4:
            continue
        if c == 7:
            break
        count += 1
    return count
