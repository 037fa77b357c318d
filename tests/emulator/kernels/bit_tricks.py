"""Bit manipulation, intrinsics and inline PTX."""

import numpy as np

from tests.emulator.corpus import Case, In, Out

MASK = 0xFFFFFFFF


def cases() -> list[Case]:
    return [_case("odd_size", 301, 128), _case("one_warp", 32, 32)]


def _case(name: str, n: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    a, b = (
        rng.integers(0, 1 << 32, n, dtype=np.uint32) >> rng.integers(0, 32, n, dtype=np.uint32)
        for _ in range(2)
    )
    a[:3], b[:3] = [0, MASK, 1 << 31], [0, MASK, 0]
    out = np.array(
        [_row(int(x), int(y), i) for i, (x, y) in enumerate(zip(a, b, strict=True))], np.uint32
    )
    wide = np.array(
        [_reversed(int(x) << 32 | int(y), 64) for x, y in zip(a, b, strict=True)], np.uint64
    )
    args = (In(a), In(b), Out(out.shape, "uint32"), Out(n, "uint64"), np.int32(n))
    return Case(name, "bit_tricks", (-(-n // block), 1, 1), (block, 1, 1), args, {2: out, 3: wide})


def _row(x: int, y: int, i: int) -> list[int]:
    w, k = x << 32 | y, i & 31
    counts = [
        _reversed(x, 32),
        32 - x.bit_length(),
        _first(x),
        x.bit_count(),
        64 - w.bit_length(),
        _first(w),
        w.bit_count(),
    ]
    both = y << 32 | x  # funnel shifts: the second argument is the high word
    shifts = [both << k >> 32 & MASK, both >> k & MASK, both << min(i, 32) >> 32 & MASK]
    fields = [
        _field(x, k, y & 31),
        _signed_field(x, k, y & 31) & MASK,
        _insert(x, y, k, x >> 5 & 31),
    ]
    signed = (
        abs(_signed(x) - _signed(y))
        + 5
        + abs(x - y)
        + 9
        + (x + y >> 1)
        + (_signed(x) + _signed(y) + 1 >> 1)
    )
    return [
        *counts,
        *shifts,
        _permuted(x, y, 0x5140),
        _permuted(x, y, y & 0x7777),
        *fields,
        _reversed(x & -x, 32) + signed & MASK,
    ]


def _reversed(x: int, bits: int) -> int:
    return int(f"{x:0{bits}b}"[::-1], 2)


def _first(x: int) -> int:
    return (x & -x).bit_length()


def _signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def _permuted(x: int, y: int, selector: int) -> int:
    octets = (y << 32 | x).to_bytes(8, "little")
    return int.from_bytes(bytes(octets[selector >> 4 * k & 7] for k in range(4)), "little")


def _field(x: int, start: int, length: int) -> int:
    return x >> start & (1 << length) - 1


def _signed_field(x: int, start: int, length: int) -> int:
    if length == 0:
        return 0
    value = (
        _signed(x) >> start & (1 << length) - 1 if start + length > 32 else _field(x, start, length)
    )
    top = x >> min(start + length - 1, 31) & 1
    return value & (1 << length) - 1 | (-1 << length if top else 0)


def _insert(x: int, y: int, start: int, length: int) -> int:
    mask = (1 << length) - 1 << start & MASK
    return y & ~mask | x << start & mask
