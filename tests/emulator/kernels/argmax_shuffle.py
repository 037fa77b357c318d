"""argmax with ties, by shuffles of pairs."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("ties", 6, 1000, 128), _case("fewer_columns_than_threads", 3, 7, 64)]


def _case(name: str, rows: int, cols: int, block: int) -> Case:
    x = np.random.default_rng(cols).integers(-50, 50, (rows, cols)).astype(np.float32)
    args = (In(x), Out(rows, "float32"), Out(rows, "int64"), np.int32(cols))
    return Case(
        name, "argmax_shuffle", (rows, 1, 1), (block, 1, 1), args, {1: x.max(1), 2: x.argmax(1)}
    )
