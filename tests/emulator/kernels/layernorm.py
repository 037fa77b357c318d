"""Layer normalisation by Welford's method."""

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out


def cases() -> list[Case]:
    return [
        _case("odd_size", 4, 1023, 128),
        _case("fewer_columns_than_threads", 3, 20, 64),
        _case("far_from_zero", 2, 256, 64, 100.0),
    ]


def _case(name: str, rows: int, cols: int, block: int, shift: float = 0.0) -> Case:
    rng = np.random.default_rng(cols)
    x = (rng.standard_normal((rows, cols)) + shift).astype(np.float32)
    gamma, beta = (rng.standard_normal(cols).astype(np.float32) for _ in range(2))
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * gamma + beta
    return Case(
        name,
        "layernorm",
        (rows, 1, 1),
        (block, 1, 1),
        (
            In(x),
            In(gamma),
            In(beta),
            Out((rows, cols), "float32"),
            np.int32(cols),
            np.float32(1e-5),
        ),
        {3: expected},
        atol=1e-4 if shift else 1e-5,
        rtol=1e-5,
        gpu=Close(atol=1e-4 if shift else 1e-5, rtol=1e-5),
        shared_bytes=12 * (block // 32),
    )
