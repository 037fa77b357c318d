"""When pairs of runners that stand by are started, taken and given up."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from evoengine.evaluate.device.spare_pairs import SparePairs


class Spawned:
    """Counts pairs."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> Any:
        self.count += 1
        return self.count


def test_pairs_are_taken_in_the_order_of_their_starts_and_none_starts_before_a_refill() -> None:
    async def scene() -> None:
        spawned = Spawned()
        spares = SparePairs(spawned, count=2)
        await spares.refill()
        assert spares.pairs == (1, 2)
        assert [await spares.take() for _ in range(3)] == [1, 2, 3], "the third had to be started"
        assert (spawned.count, spares.pairs) == (3, ())
        await spares.refill()
        await spares.refill()
        assert spares.clear() == [4, 5] and spares.pairs == ()

    asyncio.run(scene())


def test_those_that_a_grader_has_are_given_up_with_it_and_the_others_stay() -> None:
    async def scene() -> None:
        spawned = Spawned()

        async def spawn() -> Any:
            return SimpleNamespace(number=await spawned(), handed_over=False)

        spares = SparePairs(spawn, count=3)
        await spares.refill()
        first, second, third = spares.pairs
        second.handed_over = True
        assert spares.clear_handed_over() == [second] and spares.pairs == (first, third)
        assert await spares.take() is first

    asyncio.run(scene())


def test_jobs_that_wait_get_one_pair_each_and_no_more_than_stand_by() -> None:
    async def scene() -> None:
        spawned = Spawned()
        spares = SparePairs(spawned, count=2)
        await asyncio.gather(spares.refill(1), spares.refill(1))
        assert spares.pairs == (1,)
        await spares.refill(5)
        assert spares.pairs == (1, 2)
        await spares.refill(1)
        assert spawned.count == 2

    asyncio.run(scene())
