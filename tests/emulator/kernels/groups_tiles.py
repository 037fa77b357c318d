"""Cooperative groups: tiles of a warp and of eight threads."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.narrow_formats import Array


def _per_thread(groups: Array, width: int) -> Array:
    return np.repeat(groups, width)


def cases() -> list[Case]:
    """Two blocks of three warps."""
    n = 192
    x = np.random.default_rng(1).integers(-100, 101, n).astype(np.int32)
    warps, eights, thread = x.reshape(-1, 32), x.reshape(-1, 8), np.arange(n)
    sums = [
        _per_thread(warps.sum(1), 32),
        _per_thread(eights.max(1), 8),
        _per_thread(eights.sum(1), 8),
    ]
    up = np.concatenate([warps[:, :5], warps[:, :-5]], axis=1).reshape(-1)
    moved = [x[thread ^ 3], up, thread % 32 // 8 * 100 + thread % 8]
    ballots = [
        _per_thread(((g > 0) << np.arange(g.shape[1])).sum(1), g.shape[1]) for g in (eights, warps)
    ]
    asked = (eights > 80).any(1) | (eights > -80).all(1).astype(int) << 1
    expected = {
        1: np.stack(sums, 1).astype(np.int32),
        2: np.stack(moved, 1).astype(np.int32),
        3: np.stack([*ballots, _per_thread(asked, 8)], 1).astype(np.uint32),
    }
    args = (In(x), Out((n, 3), "int32"), Out((n, 3), "int32"), Out((n, 3), "uint32"))
    return [Case("three_warps", "groups_tiles", (2, 1, 1), (96, 1, 1), args, expected)]
