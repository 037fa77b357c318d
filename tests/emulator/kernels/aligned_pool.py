"""Alignments of extern shared memory behind a static variable."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("all_rows", 16), _case("one_row", 1)]


def _case(name: str, rows: int) -> Case:
    x = np.random.default_rng(rows).standard_normal((rows, 8, 4)).astype(np.float32)
    args = (In(x), Out(x.shape, "float32"), np.int32(rows), Out(2, "uint32"))
    expected = {1: x, 3: np.zeros(2, np.uint32)}
    return Case(name, "aligned_pool", (1, 1, 1), (128, 1, 1), args, expected, shared_bytes=2048)
