"""Fast intrinsics, also those with a rounding of their own."""

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 301)]


def _case(name: str, n: int) -> Case:
    rng = np.random.default_rng(n)
    x, y = (
        (rng.standard_normal(n) * 3).astype(np.float32),
        (rng.random(n) * 6 - 3).astype(np.float32),
    )
    a, b = x.astype(np.float64), y.astype(np.float64)
    positive = (np.abs(x) + np.float32(0.01)).astype(np.float64)
    rows = [
        *(
            np.sin(b),
            np.cos(b),
            np.sin(b) * np.cos(b),
            np.exp(a),
            10**b,
            np.log(positive),
            np.log2(positive),
            positive**b,
        ),
        *(
            a / positive,
            1 / positive,
            np.sqrt(positive),
            1 / np.sqrt(positive),
            b / positive,
            a * b + positive,
        ),
        *(a * b - (a + b), np.clip(a, 0, 1)),
    ]
    expected = np.stack(rows)
    args = (In(x), In(y), Out(expected.shape, "float32"), np.int32(n))
    near = Close(atol=2e-6, rtol=2e-6)
    return Case(
        name,
        "math_fast",
        (-(-n // 128), 1, 1),
        (128, 1, 1),
        args,
        {2: expected},
        atol=3e-6,
        rtol=1e-5,
        gpu=near,
    )
