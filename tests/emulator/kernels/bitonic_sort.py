"""Bitonic sort of keys with values in shared memory."""

import numpy as np

from tests.emulator.corpus import Case, InOut


def cases() -> list[Case]:
    return [
        _case("rising", 256, False, 2),
        _case("falling", 64, True, 3),
        _case("below_a_warp", 8, False, 5),
    ]


def _case(name: str, threads: int, descending: bool, blocks: int) -> Case:
    keys = (
        np.random.default_rng(threads)
        .permutation(blocks * 2 * threads)
        .astype(np.float32)
        .reshape(blocks, -1)
        - 100
    )
    payload = np.arange(keys.size, dtype=np.int32).reshape(keys.shape)
    order = np.argsort(-keys if descending else keys, axis=1)
    return Case(
        name,
        f"bitonic_sort<{threads}, {str(descending).lower()}>",
        (blocks, 1, 1),
        (threads, 1, 1),
        (InOut(keys), InOut(payload)),
        {0: np.take_along_axis(keys, order, 1), 1: np.take_along_axis(payload, order, 1)},
    )
