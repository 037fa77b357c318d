"""Named barriers between halves of a block, with bar.arrive, over a ring of two buffers."""

import numpy as np

from tests.emulator.corpus import Case, In, Out


def cases() -> list[Case]:
    return [_case("odd_number_of_tiles", 2, 7), _case("one_tile", 3, 1)]


def _case(name: str, blocks: int, tiles: int) -> Case:
    x = np.random.default_rng(tiles).integers(-100, 100, (blocks, tiles, 64)).astype(np.float32)
    args = (In(x), Out(x.shape, "float32"), np.int32(tiles))
    return Case(
        name,
        "named_barriers",
        (blocks, 1, 1),
        (128, 1, 1),
        args,
        {1: x[:, :, ::-1] * 2 + 1},
        ordered_by="arrive",
    )
