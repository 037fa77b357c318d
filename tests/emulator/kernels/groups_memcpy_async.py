"""Cooperative groups: a copy by the whole block."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats


def _case(name: str, rows: int, columns: int) -> Case:
    x = floats(rows, rows, columns)
    args = (In(x), Out(x.shape, "float32"), np.int32(columns))
    expected = {1: x[:, ::-1] - x}
    return Case(
        name,
        "groups_memcpy_async",
        (rows, 1, 1),
        (64, 1, 1),
        args,
        expected,
        shared_bytes=4 * columns,
    )


def cases() -> list[Case]:
    """Rows that begin at 16 bytes, and rows that do not."""
    return [_case("aligned", 3, 128), _case("odd", 3, 101)]
