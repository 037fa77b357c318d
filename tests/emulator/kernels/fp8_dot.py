"""Dot products of rows of e4m3 codes with a scale each."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats
from tests.emulator.narrow_formats import E4M3


def _case(name: str, rows: int, count: int) -> Case:
    a, b = E4M3.encode(floats(rows, 2, rows, count))
    scales = np.random.default_rng(count).uniform(0.5, 2, (2, rows)).astype(np.float32)
    dots = (E4M3.decode(a) * E4M3.decode(b)).sum(axis=1) * scales[0].astype(np.float64) * scales[1]
    args = (
        In(a),
        In(b),
        In(scales[0]),
        In(scales[1]),
        Out(rows, "float32"),
        np.int32(rows),
        np.int32(count // 4),
    )
    return Case(
        name,
        "fp8_dot",
        (-(-rows // 4), 1, 1),
        (128, 1, 1),
        args,
        {4: dots},
        atol=1e-4,
        rtol=1e-5,
        arch="sm_89",
    )


def cases() -> list[Case]:
    """Rows of less than one warp's words, and long ones."""
    return [_case("short_rows", 3, 52), _case("long_rows", 11, 1028)]
