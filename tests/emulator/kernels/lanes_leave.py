"""Lanes of one warp that leave a loop after different rounds, and meet in an exchange."""

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out


def cases() -> list[Case]:
    return [_case("one_lane_longer", 33), _case("most_lanes_longer", 125)]


def _case(name: str, n: int) -> Case:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    args = (In(x), Out((n,), "float32"), np.int32(n))
    return Case(
        name,
        "lanes_leave",
        (1, 1, 1),
        (32, 1, 1),
        args,
        {1: (x - x.mean(dtype=np.float64)).astype(np.float32)},
        atol=1e-5,
        gpu=Close(1e-5),
    )
