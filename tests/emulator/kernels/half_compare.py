"""Comparisons of halves, ordered and unordered, over all pairs of special values."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.narrow_formats import Array

VALUES = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        6e-8,
        65504.0,
        -65504.0,
        np.inf,
        -np.inf,
        np.nan,
        2.5,
        -2.5,
        1.0009765625,
    ],
    np.float16,
)


def _flags(x: Array, y: Array) -> Array:
    nan = np.isnan(x) | np.isnan(y)
    ordered = [x == y, (x != y) & ~nan, x < y, x <= y, x > y, x >= y]
    pairs = [(x == y) & ~np.isnan(y), (x > y) & (y > y), x <= y, ~np.isnan(y)]
    bits = [
        *ordered,
        *(item | nan for item in ordered),
        np.isnan(x),
        np.isinf(x),
        x < y,
        x == y,
        *pairs,
    ]
    return np.asarray(
        sum(bit.astype(np.uint32) << index for index, bit in enumerate(bits)), np.uint32
    )


def cases() -> list[Case]:
    """Every value against every value, in three blocks of which the last is not full."""
    x, y = (np.ascontiguousarray(item.reshape(-1)) for item in np.meshgrid(VALUES, VALUES))
    return [
        Case(
            "pairs",
            "half_compare",
            (3, 1, 1),
            (64, 1, 1),
            (In(x), In(y), Out(x.size, "uint32"), np.int32(x.size)),
            {2: _flags(x, y)},
        )
    ]
