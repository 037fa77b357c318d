"""int8 dot products by __dp4a."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 6, 77), _case("fewer_words_than_lanes", 2, 9)]


def _case(name: str, rows: int, words: int) -> Case:
    rng = np.random.default_rng(words)
    a, b = (
        rng.integers(-128, 128, (rows, words * 4), dtype=np.int8),
        rng.integers(-128, 128, words * 4, dtype=np.int8),
    )
    ua, ub = a.view(np.uint8), b.view(np.uint8)
    args = (In(a), In(b), Out(rows, "int32"), In(ua), In(ub), Out(rows, "uint32"), np.int32(words))
    signed = a.astype(np.int64) @ b.astype(np.int64)
    unsigned = ua.astype(np.int64) @ ub.astype(np.int64) + 7 * 32
    expected = {2: signed.astype(np.int32), 5: unsigned.astype(np.uint32)}
    return Case(name, "dot_int8_dp4a", (rows, 1, 1), (32, 1, 1), args, expected)
