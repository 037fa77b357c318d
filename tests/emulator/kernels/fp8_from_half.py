"""float16 to e4m3 and e5m2 and back, over every seventh half."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.narrow_formats import E4M3, E5M2, HALF


def cases() -> list[Case]:
    """Codes of halves of both signs, infinities and NaN among them."""
    codes = np.concatenate([np.arange(0, 1 << 16, 7), [0x7C00, 0xFC00, 0x7E00]]).astype(np.uint16)
    codes = codes[: codes.size // 2 * 2]
    wide = HALF.decode(codes)
    fours, fives = E4M3.encode(wide, saturate=True), E5M2.encode(wide, saturate=True)
    pairs = codes.size // 2
    args = (
        In(codes.view(np.float16)),
        Out(pairs, "uint16"),
        Out(pairs, "uint16"),
        Out((pairs, 2), "float16"),
        np.int32(pairs),
    )
    expected = {
        1: fours.view(np.uint16),
        2: fives.view(np.uint16),
        3: E5M2.decode(fives).reshape(pairs, 2),
    }
    return [
        Case(
            "every_seventh",
            "fp8_from_half",
            (-(-pairs // 256), 1, 1),
            (256, 1, 1),
            args,
            expected,
            arch="sm_89",
        )
    ]
