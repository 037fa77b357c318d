"""Inclusive scans by doubling steps in shared memory; block sizes need not be powers of two."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("power_of_two", 512, 128),
        _case("odd_block", 1000, 100),
        _case("below_a_warp", 40, 13),
    ]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).integers(-100, 100, n, dtype=np.int32)
    expected = np.concatenate(
        [x[start : start + block].cumsum() for start in range(0, n, block)]
    ).astype(np.int32)
    args = (In(x), Out(n, "int32"), np.int32(n))
    return Case(
        name,
        "scan_hillis_steele",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        args,
        {1: expected},
        shared_bytes=8 * block,
    )
