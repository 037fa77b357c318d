"""Whose turn it is at a device that does one thing at a time."""

from __future__ import annotations

import asyncio
import itertools
from bisect import insort
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum

from evoengine.protocols import Job, Purpose


class Rank(IntEnum):
    """Who gets the turn first of those that wait."""

    race = 0  # its trial is the next to settle
    soon = 1  # verifications: their trials will mostly settle before those that get first verdicts
    usual = 2
    last = 3  # diagnoses, which decide nothing


def rank_of(job: Job, verify: bool) -> Rank:
    """The rank of a job."""
    if verify:
        return Rank.soon
    return Rank.last if job.purpose is Purpose.diagnosis else Rank.usual


class Turn:
    """A lock for one holder at a time; those that wait get it by their rank, those of one rank by
    their number, and those of one number in the order in which they came.
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._arrivals = itertools.count()
        self._waiting = list[tuple[Rank, int, int, asyncio.Future[None]]]()  # in their order

    @property
    def is_taken(self) -> bool:
        """Whether somebody holds the turn."""
        return self._is_taken

    @property
    def waiting_soon(self) -> int:
        """How many verifications and races wait."""
        return sum(rank <= Rank.soon for rank, *_ in self._waiting)

    @asynccontextmanager
    async def taken(self, rank: Rank = Rank.usual, number: int = 0) -> AsyncIterator[None]:
        """Waits for the turn and holds it."""
        await self._take(rank, number)
        try:
            yield
        finally:
            self._give_on()

    async def _take(self, rank: Rank, number: int) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        given = asyncio.get_running_loop().create_future()
        waiter = (rank, number, next(self._arrivals), given)
        insort(self._waiting, waiter)  # no two have one arrival, so no future is compared
        try:
            await given
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            elif not given.cancelled():  # it was given the turn in the moment of its end
                self._give_on()
            raise

    def _give_on(self) -> None:
        """Gives the turn to the next one; those that ended while they waited are left out."""
        while self._waiting:
            *_, given = self._waiting.pop(0)
            if not given.done():
                given.set_result(None)
                return
        self._is_taken = False
