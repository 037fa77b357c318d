"""A loop that a warp leaves together, with shuffles inside."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 200, 64), _case("no_work", 32, 32, 1)]


def _case(name: str, n: int, block: int, most: int = 30) -> Case:
    work = np.random.default_rng(n).integers(0, most, n, dtype=np.int32)
    padded = np.zeros(-(-n // block) * block, np.int32)
    padded[:n] = work
    left, done = padded.reshape(-1, 32).copy(), np.zeros((padded.size // 32, 32), np.int32)
    turns = np.zeros(padded.size // 32, np.int32)
    turn = 0
    while (left > 0).any():
        turns += (left > 0).any(1)
        take = np.minimum(np.where(left == left.max(1, keepdims=True), 2, 1), left)
        left -= take
        done += take * (turn + 1)
        turn += 1
    args = (In(work), Out(n, "int32"), Out(turns.shape, "int32"), np.int32(n))
    return Case(
        name,
        "warp_queue",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        args,
        {1: done.reshape(-1)[:n], 2: turns},
    )
