"""Rotary position embedding, in place, on pairs of halves."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, InOut
from tests.emulator.float64_references import halves


def _case(name: str, length: int, heads: int, dimensions: int) -> Case:
    x = halves(length, length, heads, dimensions)
    pairs = dimensions // 2
    angles = np.arange(length)[:, None] * 10000.0 ** (-np.arange(pairs) / pairs)
    table = np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
    even, odd = x[..., 0::2].astype(np.float64), x[..., 1::2].astype(np.float64)
    cos, sin = table[:, None, :, 0].astype(np.float64), table[:, None, :, 1].astype(np.float64)
    turned = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(x.shape)
    total = length * heads * pairs
    args = (InOut(x), In(table), np.int32(heads), np.int32(pairs), np.int32(total))
    return Case(
        name,
        "rotary_half2",
        (3, 1, 1),
        (96, 1, 1),
        args,
        {0: turned},
        atol=1e-4,
        rtol=1e-3,
        gpu=Close(1e-4, 1e-3),
    )


def cases() -> list[Case]:
    """Less than the grid, and a loop over it that ends unevenly."""
    return [_case("few", 3, 2, 10), _case("grid_stride", 17, 3, 64)]
