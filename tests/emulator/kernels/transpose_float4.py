"""A transpose of 4 x 4 patches in registers."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("square", 64, 64), _case("patches_left_over", 36, 100)]


def _case(name: str, rows: int, cols: int) -> Case:
    x = np.random.default_rng(rows).standard_normal((rows, cols)).astype(np.float32)
    args = (In(x), Out((cols, rows), "float32"), np.int32(rows), np.int32(cols))
    grid = (-(-cols // 32), -(-rows // 32), 1)
    return Case(name, "transpose_float4", grid, (8, 8, 1), args, {1: x.T})
