"""A histogram with one atomic for all lanes of equal key, by __match_any_sync."""

import numpy as np

from tests.emulator.corpus import Case, In, InOut


def cases() -> list[Case]:
    return [_case("few_keys", 1000, 4), _case("many_keys", 515, 100)]


def _case(name: str, n: int, bins: int) -> Case:
    keys = np.random.default_rng(n).integers(0, bins, n, dtype=np.int32)
    expected = np.bincount(keys, minlength=bins).astype(np.int32)
    args = (In(keys), InOut(np.zeros(bins, np.int32)), np.int32(n))
    return Case(name, "histogram_match_any", (-(-n // 128), 1, 1), (128, 1, 1), args, {1: expected})
