"""wmma on bfloat16 with float sums, operands staged in shared memory."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import BFLOAT16


def _case(name: str, m: int, n: int, k: int) -> Case:
    a, b = BFLOAT16.encode(floats(m, m, k)), BFLOAT16.encode(floats(n, k, n))
    expected = BFLOAT16.decode(a) @ BFLOAT16.decode(b)
    args = (In(a, "bfloat16"), In(b, "bfloat16"), Out((m, n), "float32"), np.int32(n), np.int32(k))
    grid = (n // 16, m // 16, 1)
    return Case(
        name,
        "wmma_bfloat",
        grid,
        (32, 1, 1),
        args,
        {2: expected},
        atol=1e-4,
        rtol=1e-5,
        gpu=Close(1e-4, 1e-5),
    )


def cases() -> list[Case]:
    """Six tiles."""
    return [_case("tiles", 32, 48, 112)]
