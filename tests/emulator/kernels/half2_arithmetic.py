"""half2 arithmetic, each operation rounded once."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [
        _case("normal", 300, 1.0),
        _case("overflowing", 65, 300.0),
        _case("subnormal", 40, 0.002),
    ]


def _case(name: str, n: int, scale: float) -> Case:
    rng = np.random.default_rng(n)
    a, b, c = ((rng.standard_normal((n, 2)) * scale).astype(np.float16) for _ in range(3))
    x, y, z = (item.astype(np.float64) for item in (a, b, c))
    with np.errstate(over="ignore", under="ignore"):
        fused = (x * y + z).astype(np.float16)
        plain = np.stack([x + y, x * y, -x - z], 1).astype(np.float16)
    extremes = np.stack([np.maximum(a, b), np.minimum(abs(a), b)], 1)
    wide = np.stack([x[:, 0] + z[:, 0], x[:, 1] - y[:, 1]], 1).astype(np.float32)
    packed = (wide[:, 1] * np.float32(0.001)).astype(np.float16)
    less = np.stack([a[:, 0] < b[:, 0], packed >= 0], 1).astype(np.uint8)
    args = (
        In(a),
        In(b),
        In(c),
        Out((n, 2), "float16"),
        Out((n, 3, 2), "float16"),
        Out((n, 2, 2), "float16"),
        Out((n, 2), "float32"),
        Out((n, 2), "uint8"),
        np.int32(n),
    )
    expected = {3: fused, 4: plain, 5: extremes, 6: wide, 7: less}
    return Case(name, "half2_arithmetic", (-(-n // 64), 1, 1), (64, 1, 1), args, expected)
