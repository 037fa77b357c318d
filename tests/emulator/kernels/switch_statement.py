"""Switches, dense and sparse, with fall-through, taken differently by every lane."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 200, 24, 64), _case("short_programs", 33, 3, 32)]


def _case(name: str, n: int, length: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    code, data = (
        rng.integers(0, 12, (n, length), dtype=np.uint8),
        rng.integers(-300, 300, n, dtype=np.int32),
    )
    out = np.array([_run(code[i], int(data[i])) for i in range(n)], np.int64).astype(np.int32)
    args = (In(code), np.int32(length), In(data), Out(n, "int32"), np.int32(n))
    return Case(name, "switch_statement", (-(-n // block), 1, 1), (block, 1, 1), args, {3: out})


def _run(program: np.ndarray, a: int) -> int:
    b, pc = 1, 0
    while pc < len(program):
        a, b, skip = _step(int(program[pc]), a, b)
        pc += 1 + skip
        a, b = _wrap(a), _wrap(b)
        b ^= {0x0100: 1, 0x1000: 2, 0x7F00: 4}.get(a & 0xFF00, 0)
    return _wrap(a * 31 + b)


def _step(op: int, a: int, b: int) -> tuple[int, int, int]:
    if op > 9:
        return a, b, 1
    if op in (2, 6, 7):
        return a, (a if op == 2 else b + 7), 0
    new = {
        0: a + b,
        1: a - b,
        3: _wrap(a * 3) ^ 0x55,
        4: a ^ 0x55,
        5: -a,
        8: a if a > 0 else 1 - a,
        9: max(a, b),
    }[op]
    return new, b, 0


def _wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
