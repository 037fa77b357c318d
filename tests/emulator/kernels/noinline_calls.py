"""Calls of __noinline__ device functions with pointer and struct, under divergence."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 301, 64), _case("part_of_a_warp", 11, 32)]


def _case(name: str, n: int, block: int) -> Case:
    x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
    out = np.array([_thread(float(v), i) for i, v in enumerate(x)])
    args = (In(x), Out((n, 2), "float32"), np.int32(n))
    return Case(
        name,
        "noinline_calls",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        args,
        {1: out},
        atol=1e-5,
        rtol=1e-5,
    )


def _thread(v: float, i: int) -> list[float]:
    r = (v + (i & 3)) * 0.5
    if i % 3 == 0:
        r = 2 * _polynomial(-r, 2) if r < 0 else 2 * _polynomial(r, 3)
    elif i % 3 == 1:
        r = _polynomial(r, i & 7)
    return [min(r, v), max(r, v)]


def _polynomial(x: float, degree: int) -> float:
    return sum((k + 1) * x**k for k in range(degree + 1))
