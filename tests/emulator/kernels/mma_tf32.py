"""mma.sync m16n8k8 and m16n8k4 on tf32."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import floats, product
from tests.emulator.narrow_formats import tf32


def _case(name: str, k: int) -> Case:
    m, n = 32, 24
    a, b = floats(k, m, k), floats(k + 1, k, n)
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(n), np.int32(k))
    expected = {2: product(tf32(a), tf32(b))}
    return Case(
        name,
        "mma_tf32",
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
    return [_case("whole", 32), _case("half_a_step", 44)]
