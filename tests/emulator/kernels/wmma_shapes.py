"""wmma tiles of 16x16, 32x8 and 8x32."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import halves, product


def _case(tile_m: int, tile_n: int) -> Case:
    m, n, k = 64, 96, 48
    a, b = halves(tile_m, m, k), halves(tile_n, k, n)
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(n), np.int32(k))
    kernel, grid = f"wmma_shapes<{tile_m}, {tile_n}>", (n // tile_n, m // tile_m, 1)
    name = f"m{tile_m}n{tile_n}k16"
    return Case(
        name,
        kernel,
        grid,
        (32, 1, 1),
        args,
        {2: product(a, b)},
        atol=1e-4,
        rtol=1e-5,
        gpu=Close(1e-4, 1e-5),
    )


def cases() -> list[Case]:
    """The same product by each shape."""
    return [_case(16, 16), _case(32, 8), _case(8, 32)]
