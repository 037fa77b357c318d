"""Three stages of cp.async groups."""

from __future__ import annotations

import numpy as np

from tests.emulator.corpus import Case, In, Out
from tests.emulator.float64_references import floats


def _case(name: str, blocks: int, chunks: int) -> Case:
    x = floats(chunks, blocks, chunks, 256)
    columns = x.astype(np.float64).sum(axis=1)
    expected = np.roll(columns, -1, axis=1).reshape(blocks, 4, 64).sum(axis=1)
    args = (In(x), Out((blocks, 64), "float32"), np.int32(chunks))
    return Case(name, "cp_async_stages", (blocks, 1, 1), (64, 1, 1), args, {1: expected}, atol=1e-4)


def cases() -> list[Case]:
    """Fewer chunks than stages, and many."""
    return [_case("one_chunk", 2, 1), _case("two_chunks", 1, 2), _case("many", 3, 11)]
