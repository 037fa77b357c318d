"""Barriers that count and vote."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 600, 128), _case("odd_block", 100, 45)]


def _case(name: str, n: int, block: int) -> Case:
    blocks = -(-n // block)
    padded = np.zeros((blocks, block), np.int32)
    x = np.random.default_rng(n).integers(0, 100, n, dtype=np.int32)
    x[n // 2], x[n // 3] = -4, 77
    padded.reshape(-1)[:n] = x
    rounds = -(-np.maximum(padded, 0) // (1 + (np.arange(block) & 7)))
    flags = (padded >= 0).all(1).astype(np.int32) | (padded == 77).any(1).astype(np.int32) << 1
    args = (In(x), Out(blocks, "int32"), Out(blocks, "int32"), Out(blocks, "int32"), np.int32(n))
    expected = {
        1: (padded > 50).sum(1).astype(np.int32),
        2: rounds.max(1).astype(np.int32),
        3: flags,
    }
    return Case(name, "barrier_votes", (blocks, 1, 1), (block, 1, 1), args, expected)
