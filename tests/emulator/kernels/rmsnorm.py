"""RMS normalisation of float16 rows."""

import numpy as np

from tests.emulator.corpus import Case, In, Out, Ulp


def cases() -> list[Case]:
    return [_case("several_rounds", 5, 1030, 128), _case("one_warp", 2, 64, 32)]


def _case(name: str, rows: int, hidden: int, threads: int) -> Case:
    rng = np.random.default_rng(hidden)
    x, weight = (
        rng.standard_normal((rows, hidden)).astype(np.float16),
        rng.standard_normal(hidden).astype(np.float16),
    )
    wide = x.astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(1, keepdims=True) + 1e-6) * weight
    return Case(
        name,
        f"rmsnorm<{threads}>",
        (rows, 1, 1),
        (threads, 1, 1),
        (In(x), In(weight), Out((rows, hidden), "float16"), np.int32(hidden), np.float32(1e-6)),
        {2: expected},
        atol=1e-6,
        rtol=1e-3,
        gpu=Ulp(1, "float16"),
    )
