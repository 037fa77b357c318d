"""mma.sync m16n8k32 and m16n8k16 on signed bytes."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out


def _case(name: str, k: int) -> Case:
    m, n = 48, 16
    rng = np.random.default_rng(k)
    a, b = (
        rng.integers(-128, 128, (m, k)).astype(np.int8),
        rng.integers(-128, 128, (n, k)).astype(np.int8),
    )
    args = (In(a), In(b), Out((m, n), "int32"), np.int32(n), np.int32(k))
    return Case(
        name,
        "mma_int8",
        (2, 3, 1),
        (32, 1, 1),
        args,
        {2: (a.astype(np.int64) @ b.T.astype(np.int64)).astype(np.int32)},
    )


def cases() -> list[Case]:
    """Whole steps, and half a step at the end."""
    return [_case("whole", 64), _case("half_a_step", 112)]
