"""Every code of e4m3 and e5m2 as a number."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.narrow_formats import E4M3, E5M2


def cases() -> list[Case]:
    """256 codes in three blocks."""
    codes = np.arange(256).astype(np.uint8)
    args = (
        In(codes),
        Out(256, "float32"),
        Out(256, "float32"),
        Out((128, 2), "float16"),
        np.int32(256),
    )
    expected = {1: E4M3.decode(codes), 2: E5M2.decode(codes), 3: E4M3.decode(codes).reshape(128, 2)}
    return [Case("all_codes", "fp8_decode", (3, 1, 1), (96, 1, 1), args, expected, arch="sm_89")]
