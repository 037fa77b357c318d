"""A maximum, the last positive element and whether a value is there, by atomics that are looked at
first.
"""

import numpy as np

from tests.emulator.corpus import Case, In, InOut, Out


def cases() -> list[Case]:
    return [_case("found", 1000, 5, 64), _case("absent", 333, 2, 128)]


def _case(name: str, n: int, blocks: int, block: int) -> Case:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    sought = x[n // 2] if name == "found" else np.float32(9)
    best, top, found = x.max(), int(np.flatnonzero(x > 0)[-1]), int(name == "found")
    args = (
        In(x),
        np.int32(n),
        np.float32(sought),
        InOut(np.full(1, -np.inf, np.float32)),
        InOut(np.full(1, -1, np.int32)),
        InOut(np.zeros(1, np.int32)),
        InOut(np.zeros(1, np.uint32)),
        Out(3, "float32"),
    )
    expected = {
        3: np.array([best]),
        4: np.array([top], np.int32),
        5: np.array([found], np.int32),
        6: np.array([blocks], np.uint32),
        7: np.array([best + np.float32(1), top, found], np.float32),
    }
    return Case(
        name, "look_first", (blocks, 1, 1), (block, 1, 1), args, expected, ordered_by="fence"
    )
