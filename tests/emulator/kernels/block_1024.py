"""Blocks of 1024 threads."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("one_dimension", (1024, 1, 1), 3, 10), _case("two_dimensions", (32, 32, 1), 1, 7)]


def _case(name: str, block: tuple[int, int, int], blocks: int, steps: int) -> Case:
    x = np.random.default_rng(steps).integers(0, 1 << 32, (blocks, 1024), dtype=np.uint32)
    ring = x.copy()
    for _ in range(steps):
        ring = (
            np.roll(ring, -32, 1) * np.uint32(1664525) + np.roll(ring, 1, 1) + np.uint32(1013904223)
        )
    args = (In(x), Out(x.shape, "uint32"), np.int32(steps))
    return Case(name, "block_1024", (blocks, 1, 1), block, args, {1: ring})
