"""saxpy in a grid-stride loop: the product and the sum become one fused instruction."""

import numpy as np

from tests.emulator.corpus import Case, In, InOut


def cases() -> list[Case]:
    return [
        _case("several_rounds", 10_007, 3, 256),
        _case("more_threads_than_elements", 100, 4, 64),
        _case("nothing_to_do", 0, 1, 32),
    ]


def _case(name: str, n: int, blocks: int, block: int) -> Case:
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal(max(n, 1)).astype(np.float32) for _ in range(2))
    a = np.float32(1.7)
    expected = y.astype(np.float64)
    expected[:n] += float(a) * x[:n].astype(np.float64)
    args = (np.int32(n), a, In(x), InOut(y))
    return Case(
        name,
        "saxpy_grid_stride",
        (blocks, 1, 1),
        (block, 1, 1),
        args,
        {3: expected.astype(np.float32)},
        atol=1e-7,
        rtol=1e-6,
    )
