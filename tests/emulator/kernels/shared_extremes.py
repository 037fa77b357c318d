"""The maximum of each row, and the first element above 1."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("normal", 3, 300, 128), _case("narrow", 2, 5, 64)]


def _case(name: str, rows: int, width: int, block: int) -> Case:
    x = np.random.default_rng(width).standard_normal((rows, width)).astype(np.float32)
    above = x > 1
    expected = {1: x.max(1), 2: np.where(above.any(1), above.argmax(1), width).astype(np.int32)}
    args = (In(x), Out(rows, "float32"), Out(rows, "int32"), np.int32(width))
    return Case(name, "shared_extremes", (rows, 1, 1), (block, 1, 1), args, expected)
