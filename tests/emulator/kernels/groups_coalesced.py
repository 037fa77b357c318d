"""Cooperative groups: the threads that happen to be active."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, InOut, Out


def _case(name: str, x: np.ndarray, block: int) -> Case:
    n = x.size
    found = x % 3 == 0
    kept = np.full(n, -1, np.int32)
    after = kept.copy()
    after[: found.sum()] = x[found]
    warp = np.arange(n) // block * (block // 32) + np.arange(n) % block // 32
    sizes = np.where(found, np.bincount(warp, found)[warp], 0).astype(np.int32)
    counter, count = np.zeros(1, np.int32), np.array([found.sum()], np.int32)
    args = (In(x), InOut(kept), InOut(counter), Out(n, "int32"), np.int32(n))
    expected = {1: after, 2: count, 3: sizes}
    return Case(name, "groups_coalesced", (-(-n // block), 1, 1), (block, 1, 1), args, expected)


def cases() -> list[Case]:
    """One warp keeps the order of its lanes; between warps it is open, so there all that is kept is
    alike.
    """
    rng = np.random.default_rng(3)
    return [
        _case("one_warp", rng.integers(0, 1000, 29).astype(np.int32), 32),
        _case("alike", rng.choice([1, 2, 6], 333).astype(np.int32), 64),
    ]
