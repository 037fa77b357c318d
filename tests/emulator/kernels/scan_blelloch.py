"""Exclusive scans by sweeping up and down a tree, with padding against bank conflicts."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("many_warps", 512, 3), _case("one_warp", 64, 2), _case("half_a_warp", 32, 1)]


def _case(name: str, n: int, blocks: int) -> Case:
    x = np.random.default_rng(n).random((blocks, n), np.float32)
    inclusive = x.astype(np.float64).cumsum(1)
    return Case(
        name,
        f"scan_blelloch<{n}>",
        (blocks, 1, 1),
        (n // 2, 1, 1),
        (In(x), Out((blocks, n), "float32"), Out(blocks, "float32")),
        {1: inclusive - x, 2: inclusive[:, -1]},
        atol=1e-5,
        rtol=1e-5,
    )
