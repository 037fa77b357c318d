"""Odd-even sort until __syncthreads_or says that nothing changed; neighbouring 16-bit elements
belong to different threads.
"""

import numpy as np

from tests.emulator.corpus import Case, InOut, Out


def cases() -> list[Case]:
    return [_case("odd_size", 77, 3, 64), _case("fewer_threads_than_pairs", 100, 2, 20)]


def _case(name: str, n: int, blocks: int, block: int) -> Case:
    data = np.random.default_rng(n).integers(0, 65536, (blocks, n), dtype=np.uint16)
    args = (InOut(data), np.int32(n), Out(blocks, "int32"))
    rounds = np.array([_rounds(row.copy()) for row in data], np.int32)
    expected = {0: np.sort(data, axis=1), 2: rounds}
    return Case(
        name, "odd_even_sort", (blocks, 1, 1), (block, 1, 1), args, expected, shared_bytes=2 * n
    )


def _rounds(row: np.ndarray) -> int:
    count, changed = 0, True
    while changed:
        changed = False
        for phase in (0, 1):
            left, right = row[phase:-1:2].copy(), row[phase + 1 :: 2].copy()
            changed |= bool((left > right).any())
            row[phase:-1:2], row[phase + 1 :: 2] = np.minimum(left, right), np.maximum(left, right)
        count += 1
    return count
