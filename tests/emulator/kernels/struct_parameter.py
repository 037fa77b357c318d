"""A struct by value as the kernel's parameter."""

import numpy as np

from tests.emulator.corpus import Case, Out

INNER = np.dtype([("a", "i2"), ("b", "i1"), ("c", "f8")], align=True)
PARAMS = np.dtype(
    [
        ("count", "i4"),
        ("weights", "f4", 5),
        ("inner", INNER),
        ("flags", "u1", 3),
        ("offset", "i8"),
        ("shift", "f4", 3),
    ],
    align=True,
)


def cases() -> list[Case]:
    return [_case("odd_size", 77), _case("one_thread_works", 1)]


def _case(name: str, n: int) -> Case:
    weights, shift = (
        np.array([0.5, -1.25, 3.0, 8.5, 1e6], np.float32),
        np.array([0.25, 7.0, -3.0], np.float32),
    )
    params = np.array((n, weights, (-300, -7, 0.125), (1, 0, 200), -(1 << 40), shift), PARAMS)[()]
    i = np.arange(n)
    expected = weights[i % 5].astype(np.float64) + (-300 - 7 * 0.125)
    expected += np.where(np.array([1, 0, 200])[i % 3] != 0, -float(1 << 40), 0.0)
    expected += np.where(i & 1, shift[0], np.where(i & 2, shift[1], shift[2])) + 9
    args = (params, np.uint8(9), Out(n, "float64"))
    return Case(name, "struct_parameter", (-(-n // 32), 1, 1), (32, 1, 1), args, {2: expected})
