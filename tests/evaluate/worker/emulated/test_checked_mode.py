"""Which blocks checked mode follows."""

from __future__ import annotations

import pytest

from evoengine.evaluate.worker.emulated.checked_mode import sample


@pytest.mark.parametrize("total", [1, 2, 3, 4, 5, 7, 64, 1000, 2**31 - 1])
@pytest.mark.parametrize("count", [4, 5, 8, 100])
def test_a_sample_holds_the_first_and_the_last_block_and_only_blocks_of_the_grid(
    total: int, count: int
) -> None:
    found = sample(total, count)
    assert found[0] == 0 and found[-1] == total - 1
    assert found == sorted(set(found)) and len(found) <= max(
        count, total if total <= count else count
    )


def test_a_sample_has_neighbours_because_they_meet_each_others_memory() -> None:
    found = sample(1000, 8)
    assert len(found) == 8 and sum(block + 1 in found for block in found) == 4


def test_a_sample_is_the_same_every_time() -> None:
    assert sample(12345, 77) == sample(12345, 77)
