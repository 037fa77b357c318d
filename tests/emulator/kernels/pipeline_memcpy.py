"""__pipeline_memcpy_async with commits, waits and zero fill."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats


def _case(name: str, n: int) -> Case:
    x = floats(n, n)
    padded = np.pad(x.astype(np.float64), 3)
    sums = np.lib.stride_tricks.sliding_window_view(padded, 7).sum(axis=1)
    args = (In(x), Out(n, "float32"), np.int32(n))
    return Case(
        name, "pipeline_memcpy", (-(-n // 128), 1, 1), (128, 1, 1), args, {1: sums - x}, atol=1e-5
    )


def cases() -> list[Case]:
    """Whole blocks, and a row that ends within one."""
    return [_case("whole", 256), _case("partial", 300)]
