"""A device's turn: one holder at a time, by their ranks, none lost."""

from __future__ import annotations

import asyncio

import hypothesis.strategies as st
from hypothesis import given

from evoengine.evaluate.device.turn import Rank, Turn


async def _take(turn: Turn, name: str, rank: Rank, order: list[str]) -> None:
    async with turn.taken(rank):
        order.append(name)
        await asyncio.sleep(0)


def test_those_that_wait_come_by_their_rank_and_each_rank_in_its_order() -> None:
    async def run() -> list[str]:
        turn, order = Turn(), list[str]()
        usual, soon, last = Rank.usual, Rank.soon, Rank.last
        waiting = {"a": usual, "b": last, "c": usual, "d": soon, "e": last, "f": usual, "g": soon}
        await asyncio.gather(*(_take(turn, name, rank, order) for name, rank in waiting.items()))
        return order

    assert asyncio.run(run()) == ["a", "d", "g", "c", "f", "b", "e"]


def test_of_one_rank_the_lowest_number_comes_first() -> None:
    async def run() -> list[str]:
        turn, order = Turn(), list[str]()

        async def take(name: str, rank: Rank, number: int) -> None:
            async with turn.taken(rank, number):
                order.append(name)
                await asyncio.sleep(0)

        waiting = {"a": 9, "b": 3, "c": 1, "d": 1, "e": 2}
        await asyncio.gather(
            *(take(name, Rank.usual, number) for name, number in waiting.items()),
            take("race", Rank.race, 12),
        )
        return order

    assert asyncio.run(run()) == ["a", "race", "c", "d", "e", "b"]


@given(
    st.lists(
        st.tuples(st.sampled_from(Rank), st.none() | st.integers(0, 12)), min_size=1, max_size=6
    )
)
def test_one_at_a_time_and_the_turn_survives_every_cancelled_waiter(
    waiters: list[tuple[Rank, int | None]],
) -> None:
    """Each waiter may be cancelled after so many steps of the loop."""

    async def run() -> None:
        turn, holders, most, ended = Turn(), 0, 0, 0

        async def hold(rank: Rank) -> None:
            nonlocal holders, most, ended
            async with turn.taken(rank):
                holders += 1
                most = max(most, holders)
                try:
                    await asyncio.sleep(0)
                finally:
                    holders -= 1
            ended += 1

        tasks = [asyncio.create_task(hold(rank)) for rank, _ in waiters]
        for step in range(13):
            for task, (_, cancelled_at) in zip(tasks, waiters, strict=True):
                if cancelled_at == step:
                    task.cancel()
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await asyncio.gather(*tasks, return_exceptions=True)
            await hold(Rank.usual)  # the turn is free again
        assert most == 1
        assert ended >= 1 + sum(at is None for _, at in waiters)

    asyncio.run(run())
