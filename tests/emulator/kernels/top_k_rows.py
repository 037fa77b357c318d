"""The largest few of each row, with ties."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import halves


def _case(k: int, rows: int, columns: int) -> Case:
    x = np.round(halves(k, rows, columns) * np.float16(4)) / np.float16(4)  # many values twice
    order = np.argsort(-x.astype(np.float64), axis=1, kind="stable")[:, :k]
    args = (In(x), Out((rows, k), "float16"), Out((rows, k), "int32"), np.int32(columns))
    expected = {1: np.take_along_axis(x, order, axis=1), 2: order.astype(np.int32)}
    return Case(
        f"k{k}",
        f"top_k_rows<{k}>",
        (rows, 1, 1),
        (32, 1, 1),
        args,
        expected,
        shared_bytes=4 * columns,
    )


def cases() -> list[Case]:
    """The first of few, and eight of a hundred and one."""
    return [_case(1, 3, 20), _case(8, 5, 101)]
