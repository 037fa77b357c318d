"""mma.sync m16n8k32 on e4m3, and on e5m2 with e4m3."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import E4M3, E5M2


def _case(name: str, fives: bool) -> Case:
    m, n, k = 32, 24, 96
    left = E5M2 if fives else E4M3
    a, b = left.encode(floats(1, m, k)), E4M3.encode(floats(2, n, k))
    args = (In(a), In(b), Out((m, n), "float32"), np.int32(n), np.int32(k))
    expected = {2: left.decode(a) @ E4M3.decode(b).T}
    kernel = f"mma_fp8<{str(fives).lower()}>"
    # Tensor cores may keep as few as 14 bits of an fp8 sum: DeepSeek-V3 Technical Report,
    # arXiv:2412.19437, section 3.5.2.
    return Case(
        name,
        kernel,
        (3, 2, 1),
        (32, 1, 1),
        args,
        expected,
        atol=0.02,
        rtol=2e-3,
        gpu=Close(0.02, 2e-3),
        arch="sm_89",
    )


def cases() -> list[Case]:
    """The same product with both kinds of left operand."""
    return [_case("e4m3", False), _case("e5m2", True)]
