"""A sum of halves by packs, in float32 in between, and each pack's sum of squares."""

import numpy as np

from tests.emulator.corpus import Case, In, Out, Ulp


def cases() -> list[Case]:
    return [_case("full_blocks", 128), _case("a_part_of_a_block", 75)]


def _case(name: str, packs: int) -> Case:
    a, b = np.random.default_rng(packs).standard_normal((2, packs, 8)).astype(np.float16)
    total = a.astype(np.float32) + b.astype(np.float32)
    expected = {2: total.astype(np.float16), 3: (total.astype(np.float64) ** 2).sum(1)}
    args = (In(a), In(b), Out((packs, 8), "float16"), Out(packs, "float32"), np.uint32(packs))
    return Case(
        name,
        "packed_residual",
        (-(-packs // 64), 1, 1),
        (64, 1, 1),
        args,
        expected,
        atol=1e-4,
        rtol=1e-5,
        gpu=Ulp(4),
    )
