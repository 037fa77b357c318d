"""float32 to float16 in every rounding mode, with specials, denormal results and overflow."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import HALF, Array, special_floats


def _case(name: str, x: Array) -> Case:
    wide = x.astype(np.float64)
    modes = [HALF.encode(wide, mode) for mode in ("rn", "rn", "rz", "ru", "rd")]
    expected = np.stack([*modes, HALF.encode(-wide), modes[0]])
    doubles = HALF.rounded(wide * (1.0 + 1e-9))
    args = (In(x), Out(expected.shape, "uint16"), Out(x.size, "float16"), np.int32(x.size))
    return Case(
        name,
        "half_from_float",
        (-(-x.size // 64), 1, 1),
        (64, 1, 1),
        args,
        {1: expected, 2: doubles},
    )


def cases() -> list[Case]:
    """Values around every limit, and random ones from denormal to overflow."""
    scaled = floats(4, 900) * np.exp2(np.random.default_rng(5).integers(-30, 18, 900)).astype(
        np.float32
    )
    return [_case("special", special_floats()), _case("random", scaled.astype(np.float32))]
