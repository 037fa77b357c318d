"""Cooperative groups: scans and reductions over tiles."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out


def _case(size: int, n: int) -> Case:
    x = np.random.default_rng(size).integers(-50, 51, n).astype(np.int32)
    tiles = np.pad(x, (0, -n % 128)).reshape(-1, size).astype(np.int64)
    upto = tiles.cumsum(axis=1)
    whole = (
        np.broadcast_to(f.reduce(tiles, axis=1)[:, None], tiles.shape)
        for f in (np.minimum, np.bitwise_xor)
    )
    rows = [upto, upto - tiles, np.maximum.accumulate(tiles, axis=1), *whole]
    expected = np.stack([row.reshape(-1)[:n] for row in rows], axis=1).astype(np.int32)
    args = (In(x), Out(expected.shape, "int32"), np.int32(n))
    return Case(
        f"tiles_of_{size}",
        f"groups_scan<{size}>",
        (-(-n // 128), 1, 1),
        (128, 1, 1),
        args,
        {1: expected},
    )


def cases() -> list[Case]:
    """A warp, a part of one, and the smallest tile that exchanges anything."""
    return [_case(32, 300), _case(16, 130), _case(2, 77)]
