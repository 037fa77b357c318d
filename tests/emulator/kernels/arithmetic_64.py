"""Arithmetic on 64-bit integers against Python's unbounded ones."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 203, 64), _case("one_warp", 32, 32)]


def _case(name: str, n: int, block: int) -> Case:
    a, b = (
        np.random.default_rng(seed).integers(0, 1 << 64, n, dtype=np.uint64) for seed in (n, n + 1)
    )
    b[::5] >>= np.uint64(45)
    a[:3], b[:3] = [0, 2**64 - 1, 2**63], [0, 2**64 - 1, 1]
    out = np.array([_unsigned(int(x), int(y)) for x, y in zip(a, b, strict=True)], np.uint64)
    sout = np.array([_signed(int(x), int(y)) for x, y in zip(a, b, strict=True)], np.int64)
    args = (In(a), In(b), Out(out.shape, "uint64"), Out(sout.shape, "int64"), np.int32(n))
    return Case(
        name, "arithmetic_64", (-(-n // block), 1, 1), (block, 1, 1), args, {2: out, 3: sout}
    )


def _unsigned(x: int, y: int) -> list[int]:
    mask, k = 2**64 - 1, y & 63
    rotated = (x << k | x >> (64 - k)) & mask if k else x
    quotients = [x // (y | 1), x % (y >> 40 | 1)]
    low = [(x + y) & mask, x * y & mask, x * y >> 64, _mix(x), rotated]
    return [
        *low,
        *quotients,
        x + y >> 64,
        x ^ y,
        (x & 0xFFFFFFFF) * (y & 0xFFFFFFFF) + (y >> 32) & mask,
    ]


def _mix(h: int) -> int:
    mask = 2**64 - 1
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & mask
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & mask
    return h ^ h >> 33


def _signed(x: int, y: int) -> list[int]:
    sx, sy, k = _as(x, 64), _as(y, 64), y & 63
    divisors = sy | 1, sy >> 30 | 1
    quotient = abs(sx) // abs(divisors[0]) * (1 if (sx < 0) == (divisors[0] < 0) else -1)
    remainder = abs(sx) % abs(divisors[1]) * (-1 if sx < 0 else 1)
    return [
        sx * sy >> 64,
        sx >> k,
        _as(quotient, 64),
        remainder,
        _as(x, 32) * _as(y, 32),
        abs(sx >> 3) - (1 if sx < sy else 2),
    ]


def _as(value: int, bits: int) -> int:
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
