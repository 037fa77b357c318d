"""float64 arithmetic and functions; some are added to one another, so their own ulp says nothing
about the sum.
"""

import numpy as np
import torch

from tests.emulator.corpus import Case, Close, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 151, 64), _case("one_warp", 20, 32)]


def _case(name: str, n: int, block: int) -> Case:
    v = np.random.default_rng(n).standard_normal(n) * 3
    a = np.abs(v) + 0.5
    erf = torch.special.erf(torch.from_numpy(v)).numpy()
    rows = [
        *(
            np.sqrt(a),
            v * (1 / np.arange(1, 51)).sum(),
            np.exp(v) + np.log(a),
            np.sin(v) * np.cos(v),
            a**1.5 + np.cbrt(v),
        ),
        *(
            np.sqrt(a),
            1 / a,
            v * a - 1,
            1 / np.sqrt(a) + np.tanh(v),
            np.floor(v) + np.ceil(a) + np.trunc(v) + np.rint(v),
        ),
        *(np.minimum(v, 0.25) + np.maximum(v, -0.25), erf + np.arctan2(v, a)),
    ]
    out = np.stack(rows)
    whole = (
        np.rint(v * 1e6).astype(np.int64)
        + (v * 1e3).astype(np.int64)
        + np.float64(1).view(np.int64)
    )
    args = (In(v), Out(out.shape, "float64"), Out(n, "float32"), Out(n, "int64"), np.int32(n))
    expected = {1: out, 2: v.astype(np.float32), 3: whole}
    return Case(
        name,
        "double_precision",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        args,
        expected,
        atol=1e-14,
        rtol=1e-14,
        gpu=Close(1e-14, 1e-14),
    )
