"""mma.sync m16n8k16 and m16n8k8 on bfloat16."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import BFLOAT16


def _case(name: str, k: int) -> Case:
    m, n = 32, 24
    a, b = BFLOAT16.encode(floats(k, m, k)), BFLOAT16.encode(floats(k + 1, n, k))
    args = (In(a, "bfloat16"), In(b, "bfloat16"), Out((m, n), "float32"), np.int32(n), np.int32(k))
    expected = {2: BFLOAT16.decode(a) @ BFLOAT16.decode(b).T}
    return Case(
        name,
        "mma_bfloat",
        (3, 2, 1),
        (32, 1, 1),
        args,
        expected,
        atol=1e-4,
        rtol=1e-5,
        gpu=Close(1e-4, 1e-5),
    )


def cases() -> list[Case]:
    """Whole steps, and half a step at the end."""
    return [_case("whole", 64), _case("half_a_step", 56)]
