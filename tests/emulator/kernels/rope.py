"""Rotary position embedding in place; integer division and remainder by values known at run
time.
"""

import numpy as np

from tests.emulator.corpus import Case, Close, In, InOut


def cases() -> list[Case]:
    return [_case("halves", False, 9, 3, 64), _case("interleaved", True, 5, 2, 10)]


def _case(name: str, interleaved: bool, tokens: int, heads: int, dim: int) -> Case:
    rng = np.random.default_rng(dim)
    q = rng.standard_normal((tokens, heads, dim)).astype(np.float32)
    positions = rng.integers(0, 200, tokens, dtype=np.int32)
    angle = positions[:, None, None] * 10000.0 ** (-2 * np.arange(dim // 2) / dim)
    first, second = (
        (slice(0, None, 2), slice(1, None, 2))
        if interleaved
        else (slice(0, dim // 2), slice(dim // 2, None))
    )
    x, y = q[..., first].astype(np.float64), q[..., second].astype(np.float64)
    expected = np.empty(q.shape)
    expected[..., first] = x * np.cos(angle) - y * np.sin(angle)
    expected[..., second] = x * np.sin(angle) + y * np.cos(angle)
    return Case(
        name,
        f"rope<{str(interleaved).lower()}>",
        (tokens, 1, 1),
        (40, 1, 1),
        (InOut(q), In(positions), np.int32(heads), np.int32(dim), np.float32(10000)),
        {0: expected},
        atol=2e-4,
        rtol=1e-5,
        gpu=Close(atol=1e-4),
    )
