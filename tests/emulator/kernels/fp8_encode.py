"""float32 to e4m3 and e5m2 with saturation: ties, denormals, overflow, infinities, NaN."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.narrow_formats import E4M3, E5M2, Array, special_floats


def _case(name: str, x: Array) -> Case:
    wide = x.astype(np.float64)
    fours, fives = E4M3.encode(wide, saturate=True), E5M2.encode(wide, saturate=True)
    expected = np.stack([fours, fives, fours, fives, fours, E4M3.encode(-wide, saturate=True)])
    args = (In(x), Out(expected.shape, "uint8"), np.int32(x.size))
    return Case(
        name, "fp8_encode", (-(-x.size // 64), 1, 1), (64, 1, 1), args, {1: expected}, arch="sm_89"
    )


def cases() -> list[Case]:
    """Values around every limit, the middles between neighbouring codes, and random ones."""
    middles = np.concatenate(
        [(form.values[1:] + form.values[:-1]) / 2 for form in (E4M3, E5M2)]
    ).astype(np.float32)
    rng = np.random.default_rng(8)
    scaled = rng.standard_normal(700) * np.exp2(rng.integers(-18, 18, 700))
    return [
        _case("special", special_floats()),
        _case("middles", np.concatenate([middles, -middles])),
        _case("random", scaled.astype(np.float32)),
    ]
