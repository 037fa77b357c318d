"""A scan whose blocks look back at one another's words; the words, whose sums are rounded somehow,
are not compared.
"""

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out


def cases() -> list[Case]:
    return [_case("whole_tiles", 640), _case("a_part_of_a_tile", 1000)]


def _case(name: str, n: int) -> Case:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    tiles = -(-n // 64)
    args = (In(x), Out(n, "float32"), np.int32(n), In(np.zeros(tiles, np.uint64)))
    expected = {1: np.cumsum(x, dtype=np.float64)}
    return Case(
        name,
        "look_back_scan",
        (tiles, 1, 1),
        (64, 1, 1),
        args,
        expected,
        1e-4,
        1e-5,
        Close(1e-4, 1e-5),
        ordered_by="words",
    )
