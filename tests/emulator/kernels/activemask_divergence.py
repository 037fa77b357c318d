"""__activemask in divergent branches, used so that the result does not depend on which lanes are
together.
"""

import numpy as np

from tests.emulator.corpus import Case, In, InOut


def cases() -> list[Case]:
    return [_case("odd_size", 500, 128), _case("part_of_a_warp", 13, 32)]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(0, 1000, n, dtype=np.int32)
    kind = x % 3
    counters = [
        (kind == 0).sum(),
        (x & 3)[kind == 1].sum(),
        (kind == 2).sum(),
        (x & 1)[kind == 2].sum(),
    ]
    slots = (np.arange(n) < counters[0]).astype(np.int32)
    args = (In(x), InOut(np.zeros(4, np.int32)), InOut(np.zeros(n, np.int32)), np.int32(n))
    expected = {1: np.array(counters, np.int32), 2: slots}
    return Case(
        name, "activemask_divergence", (-(-n // block), 1, 1), (block, 1, 1), args, expected
    )
