"""Saturating and clamping operations on two halves, and the moves between their low and high
parts.
"""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import halves
from tests.emulator.narrow_formats import HALF, Array


def _expected(a: Array, b: Array, c: Array) -> Array:
    x, y, z = (item.astype(np.float64).reshape(-1, 2) for item in (a, b, c))
    fma = x * y + z
    lows, highs = np.stack([x[:, 0], y[:, 0]], 1), np.stack([x[:, 1], y[:, 1]], 1)
    crossed = np.stack([x[:, 1], y[:, 0]], 1)
    moved = (x[:, ::-1], lows, highs, x[:, [0, 0]], crossed)
    clamped = (np.clip(x + y, 0, 1), np.clip(x * y, 0, 1))
    return HALF.rounded(
        np.stack([x - y, np.maximum(fma, 0), np.clip(fma, 0, 1), -x, *moved, x / y, *clamped])
    )


def _case(name: str, pairs: int, grid: int) -> Case:
    a, b, c = halves(pairs, 3, 2 * pairs)
    args = (In(a), In(b), In(c), Out((12, pairs, 2), "float16"), np.int32(pairs))
    return Case(name, "half2_packed", (grid, 1, 1), (64, 1, 1), args, {3: _expected(a, b, c)})


def cases() -> list[Case]:
    """A part of a block, and a loop over the grid that ends unevenly."""
    return [_case("few", 45, 1), _case("grid_stride", 389, 2)]
