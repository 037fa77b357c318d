"""Attention in a sliding window, on bfloat16."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out
from tests.emulator.float64_references import attention, floats
from tests.emulator.narrow_formats import BFLOAT16


def _case(dimensions: int, length: int, window: int) -> Case:
    q, k, v = BFLOAT16.encode(floats(length, 3, 2, length, dimensions))
    inputs = (In(item, "bfloat16") for item in (q, k, v))
    scale = np.float32(dimensions**-0.5)
    args = (*inputs, Out(q.shape, "float32"), np.int32(length), np.int32(window), scale)
    wide = (BFLOAT16.decode(item) for item in (q, k, v))
    expected = {3: attention(*wide, causal=True, window=window)}
    kernel, grid = f"attention_window<{dimensions}>", (length, 2, 1)
    return Case(
        f"window_{window}",
        kernel,
        grid,
        (dimensions, 1, 1),
        args,
        expected,
        1e-4,
        1e-4,
        Close(1e-4, 1e-4),
    )


def cases() -> list[Case]:
    """A window of one key, a short one, and one that is longer than the row."""
    return [_case(64, 20, 1), _case(64, 45, 7), _case(32, 33, 100)]
