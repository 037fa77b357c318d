"""Halves that are stored one by one and read as a uint4."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("three_rounds", 3)]


def _case(name: str, rounds: int) -> Case:
    x = np.random.default_rng(rounds).standard_normal((rounds, 32, 8)).astype(np.float32)
    scale = np.arange(1, rounds + 1, dtype=np.float32)[:, None, None]
    halves = (x * scale).astype(np.float16)
    args = (In(x), Out((rounds, 32, 4), "uint32"), np.int32(rounds))
    expected = {1: halves.view(np.uint32)}
    return Case(name, "halves_read_as_vectors", (1, 1, 1), (32, 1, 1), args, expected)
