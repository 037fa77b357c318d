"""Special values of float32 in all pairs."""

import numpy as np

from tests.emulator.corpus import Case, In, Out

VALUES = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-40,
    1.1754944e-38,
    3.4028235e38,
    -3.4028235e38,
    1e-30,
    2.0,
]


def cases() -> list[Case]:
    pairs = np.array([(x, y) for x in VALUES for y in VALUES], np.float32)
    a, b = (np.ascontiguousarray(pairs[:, column]) for column in (0, 1))
    n = len(pairs)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        out = np.stack(
            [
                a + b,
                a * b,
                a / b,
                x * y + x,
                np.fmax(a, b),
                np.fmin(a, b),
                np.sqrt(a),
                np.where(a > b, a, b),
            ],
            1,
        )
        tests = [
            a < b,
            a <= b,
            a == b,
            a != b,
            a > b,
            a >= b,
            ~(a < b),
            np.isnan(a),
            np.isinf(a),
            np.isfinite(b),
            np.signbit(b),
        ]
        out = out.astype(np.float32)
    classes = sum(test.astype(np.int32) << bit for bit, test in enumerate(tests))
    args = (In(a), In(b), Out((n, 8), "float32"), Out(n, "int32"), np.int32(n))
    return [
        Case(
            "all_pairs",
            "special_values",
            (-(-n // 64), 1, 1),
            (64, 1, 1),
            args,
            {2: out, 3: classes},
        )
    ]
