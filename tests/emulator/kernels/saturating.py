"""Saturating integer arithmetic and conversions, of infinities and NaN as well."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 203, 64), _case("one_warp", 32, 32)]


def _case(name: str, n: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-(1 << 31), 1 << 31, n).astype(np.int32) for _ in range(2))
    f = (rng.standard_normal(n) * 150).astype(np.float32)
    f[:10] = [np.inf, -np.inf, np.nan, 127.5, -128.5, 254.5, 0.5, 1.5, -0.5, -0.0]
    x, y = a.astype(np.int64), b.astype(np.int64)
    number = np.nan_to_num(f.astype(np.float64), nan=0.0)
    with np.errstate(over="ignore"):
        large = np.nan_to_num((f * np.float32(1e8)).astype(np.float64), nan=0.0)
    out = np.clip(np.stack([x + y, x - y], 1), -(1 << 31), (1 << 31) - 1).astype(np.int32)
    signed = np.trunc(np.clip(large, -(2.0**31), 2.0**31 - 1)).astype(np.int64) & 0xFFFFFFFF
    unsigned = np.rint(np.clip(large, 0, 2.0**32 - 1)).astype(np.int64)
    whole = np.stack(
        [signed, unsigned, np.clip(a >> 8, -32768, 32767).astype(np.int64) & 0xFFFFFFFF], 1
    ).astype(np.uint32)
    unit = np.nan_to_num(np.clip(number * 0.5 + 0.5, 0, 1))
    unit[np.isnan(f)] = 0.0
    expected = {
        3: out,
        4: np.rint(np.clip(number, -128, 127)).astype(np.int8),
        5: np.rint(np.clip(number, 0, 255)).astype(np.uint8),
        6: whole,
        7: unit.astype(np.float32),
    }
    args = (
        *(
            In(a),
            In(b),
            In(f),
            Out((n, 2), "int32"),
            Out(n, "int8"),
            Out(n, "uint8"),
            Out((n, 3), "uint32"),
            Out(n, "float32"),
        ),
        np.int32(n),
    )
    return Case(name, "saturating", (-(-n // block), 1, 1), (block, 1, 1), args, expected)
