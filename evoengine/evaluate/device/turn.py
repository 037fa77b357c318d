"""Whose turn it is at a device that does one thing at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum

from evoengine.protocols import Job, Purpose


class Rank(IntEnum):
    """Who gets the turn first of those that wait."""

    soon = 0  # verifications and races: the trial that they belong to is mostly the next to settle
    usual = 1
    last = 2  # diagnoses, which decide nothing


def rank_of(job: Job, verify: bool) -> Rank:
    """The rank of a job."""
    if verify:
        return Rank.soon
    return Rank.last if job.purpose is Purpose.diagnosis else Rank.usual


class Turn:
    """A lock for one holder at a time; those that wait get it by their rank, and those of one rank
    in the order in which they came.
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting = {rank: deque[asyncio.Future[None]]() for rank in Rank}

    @property
    def is_taken(self) -> bool:
        """Whether somebody holds the turn."""
        return self._is_taken

    @property
    def waiting_soon(self) -> int:
        """How many verifications and races wait."""
        return len(self._waiting[Rank.soon])

    @asynccontextmanager
    async def taken(self, rank: Rank = Rank.usual) -> AsyncIterator[None]:
        """Waits for the turn and holds it."""
        await self._take(self._waiting[rank])
        try:
            yield
        finally:
            self._give_on()

    async def _take(self, waiting: deque[asyncio.Future[None]]) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        given = asyncio.get_running_loop().create_future()
        waiting.append(given)
        try:
            await given
        except asyncio.CancelledError:
            if given in waiting:
                waiting.remove(given)
            elif not given.cancelled():  # it was given the turn in the moment of its end
                self._give_on()
            raise

    def _give_on(self) -> None:
        """Gives the turn to the next one; those that ended while they waited are left out."""
        while waiting := next(filter(None, self._waiting.values()), None):
            given = waiting.popleft()
            if not given.done():
                given.set_result(None)
                return
        self._is_taken = False
