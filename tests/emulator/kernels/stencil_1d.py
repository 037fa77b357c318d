"""A one-dimensional stencil with halo in shared memory; beyond the ends there are zeros."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("radius_3", 1000, 3, 128),
        _case("radius_5_odd_block", 301, 5, 50),
        _case("one_thread_over", 65, 1, 64),
    ]


def _case(name: str, n: int, radius: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(-1000, 1000, n, dtype=np.int32)
    expected = np.convolve(x, np.ones(2 * radius + 1, np.int32), "same")
    args = (In(x), Out(n, "int32"), np.int32(n))
    return Case(
        name,
        f"stencil_1d<{radius}, {block}>",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        args,
        {1: expected},
    )
