"""Attention on mma.sync with probabilities in registers."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import attention, halves


def _case(heads: int, length: int, causal: bool) -> Case:
    q, k, v = halves(length, 3, heads, length, 64)
    args = (In(q), In(k), In(v), Out(q.shape, "float16"), np.int32(length), np.float32(0.125))
    kernel, name = (
        f"attention_flash<{str(causal).lower()}>",
        f"s{length}_{'causal' if causal else 'full'}",
    )
    expected = {3: attention(q, k, v, causal)}
    return Case(
        name,
        kernel,
        (-(-length // 64), heads, 1),
        (128, 1, 1),
        args,
        expected,
        2e-3,
        4e-3,
        Close(2e-3, 4e-3),
    )


def cases() -> list[Case]:
    """Three lengths and both masks; probabilities are rounded to half."""
    return [_case(2, 33, False), _case(2, 64, True), _case(2, 100, False), _case(1, 100, True)]
