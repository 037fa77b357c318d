"""Thirty functions of math.h in their precise variants."""

import numpy as np
import torch

from tests.emulator.corpus import Case, In, Out, Ulp


def cases() -> list[Case]:
    return [_case("moderate", 257, 4.0), _case("small", 64, 0.01)]


def _case(name: str, n: int, scale: float) -> Case:
    rng = np.random.default_rng(n)
    x = (rng.standard_normal(n) * scale).astype(np.float32)
    y = (rng.random(n) * 1.9 - 0.95).astype(np.float32)
    a, b = x.astype(np.float64), y.astype(np.float64)
    positive = (np.abs(x) + np.float32(0.001)).astype(np.float64)
    third = (positive.astype(np.float32) * np.float32(0.3)).astype(np.float64)
    erf = torch.special.erf(torch.from_numpy(a)).numpy()
    rounded = np.sign(a) * np.floor(np.abs(a * 2) + 0.5)
    rows = [
        *(np.sin(a), np.cos(a), np.tan(b), np.tanh(a), np.exp(a), np.exp2(a), np.expm1(b)),
        *(np.log(positive), np.log2(positive), np.log10(positive), np.log1p(positive), positive**b),
        *(
            np.sqrt(positive),
            1 / np.sqrt(positive),
            np.cbrt(a),
            erf,
            np.arctan(a),
            np.arctan2(a, b),
            np.arcsin(b * 0.5),
            np.sinh(b),
        ),
        *(
            np.hypot(a, b),
            np.fmod(a, third),
            np.floor(a) + np.ceil(b),
            np.trunc(a) + np.rint(b),
            rounded,
            np.copysign(a, b),
        ),
        *(np.minimum(a, b) - np.maximum(a, b), np.maximum(a - b, 0), a * 32, 1 / positive),
    ]
    expected = np.stack(rows)
    return Case(
        name,
        "math_functions",
        (-(-n // 64), 1, 1),
        (64, 1, 1),
        (In(x), In(y), Out(expected.shape, "float32"), np.int32(n)),
        {2: expected},
        atol=2e-7,
        rtol=1e-6,
        gpu=Ulp(4),
    )
