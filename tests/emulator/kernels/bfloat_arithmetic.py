"""Operations on bfloat16, each rounded once."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import BFLOAT16


def _case(name: str, n: int) -> Case:
    bits = BFLOAT16.encode(floats(n, 3, n))
    x, y, z = BFLOAT16.decode(bits)
    rows = (
        x + y,
        x - y,
        x * y,
        x * y + z,
        np.maximum(x, y),
        np.minimum(x, y),
        -x,
        np.abs(x),
        x * y + z,
        x + z,
        np.where(x > y, x, z),
        y * z,
    )
    inputs = (In(np.ascontiguousarray(row), "bfloat16") for row in bits)
    args = (*inputs, Out((12, n), "bfloat16"), np.int32(n))
    return Case(
        name,
        "bfloat_arithmetic",
        (-(-n // 128), 1, 1),
        (128, 1, 1),
        args,
        {3: BFLOAT16.rounded(np.stack(rows))},
    )


def cases() -> list[Case]:
    """Less than a warp, and several blocks with an odd end."""
    return [_case("few", 7), _case("odd_size", 777)]
