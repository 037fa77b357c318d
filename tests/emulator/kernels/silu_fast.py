"""SwiGLU with __expf and __fdividef."""

import numpy as np

from tests.emulator.corpus import Case, Close, In, Out


def cases() -> list[Case]:
    return [_case("odd_size", 1001, 128), _case("block_of_one_warp", 33, 32)]


def _case(name: str, n: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    gate, up = (
        (rng.standard_normal(n) * 5).astype(np.float32),
        rng.standard_normal(n).astype(np.float32),
    )
    wide = gate.astype(np.float64)
    args = (In(gate), In(up), Out(n, "float32"), np.int32(n))
    expected = {2: wide / (1 + np.exp(-wide)) * up}
    near = Close(atol=1e-7, rtol=5e-6)
    return Case(
        name,
        "silu_fast",
        (-(-n // block), 1, 1),
        (block, 1, 1),
        args,
        expected,
        atol=1e-6,
        rtol=1e-5,
        gpu=near,
    )
