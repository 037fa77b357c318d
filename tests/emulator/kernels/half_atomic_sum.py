"""atomicAdd on halves and on pairs of halves."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, InOut


def cases() -> list[Case]:
    """Integers small enough that every order of the sums is exact."""
    rng = np.random.default_rng(7)
    n, bins = 1000, 13
    bin_of = rng.integers(0, bins, n).astype(np.int32)
    weight = rng.integers(-3, 4, n).astype(np.float16)
    sums, counts = (
        np.bincount(bin_of, weight.astype(np.float64), bins),
        np.bincount(bin_of, minlength=bins),
    )
    start, pairs = np.ones(bins, np.float16), np.zeros((bins, 2), np.float16)
    args = (In(bin_of), In(weight), InOut(start), InOut(pairs), np.int32(n))
    expected = {2: sums + 1, 3: np.stack([sums, counts], axis=1)}
    return [Case("bins", "half_atomic_sum", (8, 1, 1), (128, 1, 1), args, expected)]
