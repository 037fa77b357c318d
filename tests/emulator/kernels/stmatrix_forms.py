"""stmatrix: where the registers of a warp go."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    """x4, x2 transposed, x1, and x1 transposed, in two blocks."""
    registers = (
        np.random.default_rng(2).integers(0, 1 << 32, (2, 4, 32), dtype=np.uint64).astype(np.uint32)
    )
    plain = registers.view(np.uint16).reshape(2, 4, 8, 8)
    turned = plain.swapaxes(2, 3)
    expected = np.concatenate([plain, turned[:, :2], plain[:, 3:], turned[:, 2:3]], axis=1)
    args = (In(registers), Out(expected.shape, "uint16"))
    return [
        Case("matrices", "stmatrix_forms", (2, 1, 1), (32, 1, 1), args, {1: expected}, arch="sm_90")
    ]
