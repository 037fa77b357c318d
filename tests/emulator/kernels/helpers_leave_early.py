"""Sums of columns."""

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out


def cases() -> list[Case]:
    return [_case("eight_warps", 20, 2, 256), _case("one_warp", 5, 1, 32)]


def _case(name: str, rows: int, blocks: int, block: int) -> Case:
    x = np.random.default_rng(rows).standard_normal((rows, blocks * 32)).astype(np.float32)
    args = (In(x), Out(blocks * 32, "float32"), np.int32(rows))
    expected = {1: x.astype(np.float64).sum(0)}
    return Case(
        name,
        "helpers_leave_early",
        (blocks, 1, 1),
        (block, 1, 1),
        args,
        expected,
        1e-5,
        1e-5,
        Close(1e-5, 1e-5),
    )
