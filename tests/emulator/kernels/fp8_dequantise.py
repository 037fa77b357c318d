"""e4m3 codes times a row's scale, as halves, with 16-byte accesses."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import E4M3, HALF


def cases() -> list[Case]:
    """Nine rows of 80 codes: pieces that end within a block."""
    rows, columns = 9, 80
    codes = E4M3.encode(floats(9, rows, columns, scale=20.0))
    scales = np.random.default_rng(9).uniform(0.01, 3, rows).astype(np.float32)
    wide = HALF.rounded(E4M3.decode(codes) * HALF.rounded(scales.astype(np.float64))[:, None])
    pieces = rows * columns // 16
    args = (
        In(codes),
        In(scales),
        Out(codes.shape, "float16"),
        np.int32(columns // 16),
        np.int32(pieces),
    )
    return [Case("rows", "fp8_dequantise", (2, 1, 1), (32, 1, 1), args, {2: wide}, arch="sm_89")]
