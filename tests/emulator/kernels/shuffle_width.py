"""Shuffles with a width; the PTX ISA's rules for lanes out of range."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    kinds = {
        "int": "int32",
        "float": "float32",
        "double": "float64",
        "unsigned long long": "uint64",
    }
    return [
        _case(kind, dtype, 32 * index + 17) for index, (kind, dtype) in enumerate(kinds.items())
    ]


def _case(kind: str, dtype: str, n: int) -> Case:
    rng = np.random.default_rng(n)
    blocks = -(-n // 64)
    x, source = (
        (rng.standard_normal(n) * 1000).astype("int64").astype(dtype),
        rng.integers(-40, 80, n, dtype=np.int32),
    )
    padded, wanted = np.zeros(blocks * 64, dtype), np.zeros(blocks * 64, int)
    padded[:n], wanted[:n] = x, source
    lane = np.arange(blocks * 64) % 32
    warp = np.arange(blocks * 64) - lane
    in_eight, in_sixteen = lane // 8 * 8, lane // 16 * 16
    froms = [
        wanted % 32,
        in_eight + wanted % 8,
        np.where(lane % 8 >= 3, lane - 3, lane),
        np.where(lane % 16 + 5 < 16, lane + 5, lane),
        in_sixteen + (lane % 16 ^ 9),
        np.where((lane ^ 12) < in_eight + 8, lane ^ 12, lane),
        np.where(lane % 2 == 0, lane + 1, lane),
        np.where(lane >= 1, lane - 1, lane),
    ]
    expected = np.stack([padded[warp + item][:n] for item in froms])
    args = (In(x), Out((8, n), dtype), In(source), np.int32(n))
    return Case(
        kind.replace(" ", "_"),
        f"shuffle_width<{kind}>",
        (blocks, 1, 1),
        (64, 1, 1),
        args,
        {1: expected},
    )
