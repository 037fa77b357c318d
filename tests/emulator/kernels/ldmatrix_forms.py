"""Every form of ldmatrix: which number reaches which lane."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.narrow_formats import Array


def _registers(matrices: Array) -> Array:
    """(n, 32) uint32 of (n, 8, 8) uint16: lane 4*r + t holds columns 2t and 2t + 1 of row r."""
    return np.ascontiguousarray(matrices).reshape(len(matrices), 64).view(np.uint32)


def cases() -> list[Case]:
    """Three blocks, each with four matrices of its own."""
    tiles = np.random.default_rng(1).integers(0, 1 << 16, (3, 4, 8, 8)).astype(np.uint16)
    plain, turned = (
        np.stack([_registers(tile) for tile in item]) for item in (tiles, tiles.swapaxes(2, 3))
    )
    parts = [plain[:, :1], turned[:, :1], plain[:, :2], turned[:, :2], plain, turned]
    expected = np.concatenate(parts, axis=1)
    return [
        Case(
            "matrices",
            "ldmatrix_forms",
            (3, 1, 1),
            (32, 1, 1),
            (In(tiles), Out(expected.shape, "uint32")),
            {1: expected},
        )
    ]
