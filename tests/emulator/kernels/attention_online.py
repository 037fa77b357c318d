"""Attention with a thread a query row, online softmax over tiles in shared memory, causal or
not.
"""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import attention, halves


def _case(heads: int, length: int, causal: bool) -> Case:
    q, k, v = halves(length, 3, heads, length, 64)
    args = (In(q), In(k), In(v), Out(q.shape, "float16"), np.int32(length), np.float32(0.125))
    kernel, name = (
        f"attention_online<64, 16, {str(causal).lower()}>",
        f"s{length}_{'causal' if causal else 'full'}",
    )
    expected = {3: attention(q, k, v, causal)}
    return Case(
        name,
        kernel,
        (-(-length // 32), heads, 1),
        (32, 1, 1),
        args,
        expected,
        1e-3,
        2e-3,
        Close(1e-3, 2e-3),
    )


def cases() -> list[Case]:
    """Lengths with and without a rest, with and without a mask."""
    return [_case(2, 33, False), _case(2, 64, True), _case(1, 100, True)]
