"""Integer division, truncating towards zero."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 305, 96), _case("one_warp", 31, 32)]


def _case(name: str, n: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    a = rng.integers(-(1 << 31), 1 << 31, n).astype(np.int32)
    b = rng.integers(-(1 << 31), 1 << 31, n).astype(np.int32) >> rng.integers(0, 31, n).astype(
        np.int32
    )
    b[b == 0] = 1
    a[:4], b[:4] = [-(1 << 31), (1 << 31) - 1, 0, -(1 << 31)], [1, -(1 << 31), -1, -(1 << 31)]
    x, y = a.astype(np.int64), b.astype(np.int64)
    ux, uy = a.view(np.uint32).astype(np.uint64), b.view(np.uint32).astype(np.uint64)
    seven, twelve, sixteen = (np.full(n, value, np.int64) for value in (7, -12, 16))
    out = np.stack(
        [
            _quotient(x, y),
            np.fmod(x, y),
            _quotient(x, seven),
            np.fmod(x, twelve),
            _quotient(x, sixteen),
            np.fmod(x, sixteen),
        ],
        1,
    )
    high = (ux * uy >> np.uint64(32)) + (x * y >> 32).astype(np.uint64)
    uout = np.stack([ux // uy, ux % uy, ux // np.uint64(7), ux % np.uint64(1000000007), high], 1)
    sx, sy = (item.astype(np.int16).astype(np.int64) for item in (a, b | 1))
    cx, cy = (item.astype(np.int8).astype(np.int64) for item in (a, b | 1))
    sout = np.stack(
        [_quotient(sx, sy), np.fmod(sx, sy), _quotient(cx, cy), (cx & 255) % (cy & 255)], 1
    )
    args = (
        In(a),
        In(b),
        Out((n, 6), "int32"),
        Out((n, 5), "uint32"),
        Out((n, 4), "int16"),
        np.int32(n),
    )
    expected = {2: out.astype(np.int32), 3: uout.astype(np.uint32), 4: sout.astype(np.int16)}
    return Case(name, "division", (-(-n // block), 1, 1), (block, 1, 1), args, expected)


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(x) // np.abs(y) * np.sign(x) * np.sign(y)
