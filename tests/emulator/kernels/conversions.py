"""Conversions and reinterpretations."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 203, 64), _case("one_warp", 32, 32)]


def _case(name: str, n: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    f = (rng.standard_normal(n) * 1000).astype(np.float32)
    f[:8] = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e-40, -0.0]
    k = rng.integers(-(1 << 31), 1 << 31, n).astype(np.int32)
    j, u = k.astype(np.int64), k.view(np.uint32).astype(np.int64)
    away = np.sign(f) * np.floor(np.abs(f.astype(np.float64)) + 0.5)
    whole = np.stack(
        [np.rint(f), np.floor(f), np.ceil(f), np.trunc(f), f.view(np.int32), np.rint(f) + away], 1
    ).astype(np.int64)
    patterns = ((k & 0x007FFFFF) | 0x40000000).astype(np.int32).view(np.float32)
    real = np.stack(
        [
            j.astype(np.float32),
            _rounded(j, False),
            _rounded(u, True),
            (j * 1000003).astype(np.float32),
            patterns,
        ],
        1,
    )
    wide = np.stack([j + f.astype(np.float64), (u << 31).astype(np.float64)], 1)
    octets = k.astype(np.int8).astype(np.int64) + ((j >> 8) & 255)
    narrow = np.stack(
        [
            np.trunc(f).astype(np.int64).astype(np.int16),
            k.astype(np.int16),
            octets.astype(np.int16),
        ],
        1,
    )
    args = (
        In(f),
        In(k),
        Out((n, 6), "int32"),
        Out((n, 5), "float32"),
        Out((n, 2), "float64"),
        Out((n, 3), "int16"),
        np.int32(n),
    )
    expected = {2: whole.astype(np.int32), 3: real, 4: wide, 5: narrow}
    return Case(name, "conversions", (-(-n // block), 1, 1), (block, 1, 1), args, expected)


def _rounded(numbers: np.ndarray, up: bool) -> np.ndarray:
    """float32 of integers rounded up, or towards zero."""
    nearest = numbers.astype(np.float32)
    exact = nearest.astype(np.float64)
    if up:
        return np.where(exact < numbers, np.nextafter(nearest, np.float32(np.inf)), nearest)
    return np.where(np.abs(exact) > np.abs(numbers), np.nextafter(nearest, np.float32(0)), nearest)
