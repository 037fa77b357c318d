"""cp.async of every size, with sources that end early."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.narrow_formats import Array


def _blocks(source: Array, blocks: int) -> Array:
    padded = np.zeros(blocks * 512, np.uint8)
    padded[: source.size] = source
    return np.stack(
        [
            np.concatenate([padded[b * size : (b + 1) * size] for size in (128, 256, 512)])
            for b in range(blocks)
        ]
    )


def _case(name: str, count: int, blocks: int) -> Case:
    source = np.random.default_rng(count).integers(1, 256, count).astype(np.uint8)
    args = (In(source), Out((blocks, 896), "uint8"), np.int32(count))
    return Case(
        name, "cp_async_sizes", (blocks, 1, 1), (32, 1, 1), args, {1: _blocks(source, blocks)}
    )


def cases() -> list[Case]:
    """Full copies, and an end that no size divides."""
    return [_case("full", 1024, 2), _case("cut_short", 1027, 3)]
