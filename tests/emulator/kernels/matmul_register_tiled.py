"""A matrix product with a tile of results in each thread's registers, by template."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats, product


def _case(name: str, tiles: tuple[int, int, int, int, int], m: int, n: int, k: int) -> Case:
    a, b = floats(m, m, k), floats(n, k, n)
    bm, bn, _, tm, tn = tiles
    kernel = f"matmul_register_tiled<{', '.join(map(str, tiles))}>"
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(m), np.int32(n), np.int32(k))
    grid, block = (-(-n // bn), -(-m // bm), 1), ((bm // tm) * (bn // tn), 1, 1)
    return Case(name, kernel, grid, block, args, {2: product(a, b)}, atol=1e-4, rtol=1e-5)


def cases() -> list[Case]:
    """Two tile shapes over odd sides."""
    return [
        _case("square", (64, 64, 8, 4, 4), 70, 90, 33),
        _case("wide", (32, 64, 16, 2, 8), 50, 65, 40),
    ]
