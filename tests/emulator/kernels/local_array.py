"""Local arrays with dynamic indices."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("sixteen", 16, 100, 32), _case("five", 5, 67, 48)]


def _case(name: str, width: int, n: int, block: int) -> Case:
    x = np.stack(
        [np.random.default_rng(row).permutation(2000)[:width] - 1000 for row in range(n)]
    ).astype(np.int32)
    ranks = np.argsort(x, axis=1).astype(np.uint8)
    ordered = np.sort(x, axis=1)
    squares, row = x.astype(np.int64) ** 2, np.arange(n)
    picked = (
        squares[row, ranks[row, row % width]] + squares[row, ordered[:, 0].view(np.uint32) % width]
    )
    args = (In(x), Out(x.shape, "int32"), Out(x.shape, "uint8"), Out(n, "int64"), np.int32(n))
    expected = {1: ordered, 2: ranks, 3: picked}
    return Case(
        name, f"local_array<{width}>", (-(-n // block), 1, 1), (block, 1, 1), args, expected
    )
