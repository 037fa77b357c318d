"""float32 to bfloat16 in every rounding mode and back, with specials."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import BFLOAT16, Array, special_floats


def _case(name: str, x: Array) -> Case:
    wide = x.astype(np.float64)
    with np.errstate(over="ignore"):
        doubled = (x * np.float32(2)).astype(np.float64)  # as float32, so that it may overflow
    modes = [BFLOAT16.encode(wide, mode) for mode in ("rn", "rn", "rz", "ru", "rd")]
    codes, back = (
        np.stack([*modes, BFLOAT16.encode(doubled)]),
        np.stack([BFLOAT16.rounded(wide)] * 2),
    )
    args = (In(x), Out(codes.shape, "uint16"), Out(back.shape, "float32"), np.int32(x.size))
    return Case(
        name, "bfloat_convert", (-(-x.size // 96), 1, 1), (96, 1, 1), args, {1: codes, 2: back}
    )


def cases() -> list[Case]:
    """Values around every limit, and random ones."""
    return [_case("special", special_floats()), _case("random", floats(6, 513, scale=100.0))]
