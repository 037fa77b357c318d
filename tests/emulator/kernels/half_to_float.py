"""Every half widened to float32, denormals, infinities and NaN included."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    """All codes at once."""
    codes = np.arange(1 << 16).astype(np.uint16).view(np.float16)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        wide = codes.astype(np.float32)
        sums = wide.reshape(-1, 2).sum(axis=1, dtype=np.float32)
    args = (In(codes), Out((1 << 15, 2), "float32"), Out(1 << 15, "float32"), np.int32(1 << 15))
    return [Case("all_codes", "half_to_float", (128, 1, 1), (256, 1, 1), args, {1: wide, 2: sums})]
