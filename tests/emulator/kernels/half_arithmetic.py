"""Scalar operations on halves, each rounded once; random and special values."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import halves
from tests.emulator.narrow_formats import HALF, Array

SPECIAL = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        6e-8,
        -6e-8,
        6.1e-5,
        65504.0,
        -65504.0,
        1.001,
        np.inf,
        -np.inf,
        np.nan,
    ],
    np.float16,
)


def _expected(a: Array, b: Array, c: Array) -> Array:
    x, y, z = (item.astype(np.float64) for item in (a, b, c))
    with np.errstate(invalid="ignore", divide="ignore"):
        add, sub, mul, div, fma = x + y, x - y, x * y, x / y, x * y + z
    saturated = (np.nan_to_num(np.clip(item, 0, 1)) for item in (add, mul, fma))
    relu = np.where(np.isnan(fma), np.nan, np.maximum(fma, 0))
    rows = (add, sub, mul, div, fma, -x, np.abs(x), np.fmax(x, y), np.fmin(x, y), *saturated, relu)
    return HALF.rounded(np.stack(rows))


def _case(name: str, a: Array, b: Array, c: Array) -> Case:
    out = Out((13, a.size), "float16")
    grid = (-(-a.size // 96), 1, 1)
    args = (In(a), In(b), In(c), out, np.int32(a.size))
    return Case(name, "half_arithmetic", grid, (96, 1, 1), args, {3: _expected(a, b, c)})


def cases() -> list[Case]:
    """Random values of an odd count, and all triples of special values."""
    triples = np.stack(np.meshgrid(SPECIAL, SPECIAL, SPECIAL)).reshape(3, -1)
    return [
        _case("random", *halves(1, 3, 1001)),
        _case("special", *(np.ascontiguousarray(x) for x in triples)),
    ]
