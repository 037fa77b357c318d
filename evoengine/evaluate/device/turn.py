"""Whose turn it is at a device that does one thing at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turn:
    """A lock for one holder at a time; those that wait with `soon` get it before those without, and
    otherwise in the order in which they came.
    """

    def __init__(self) -> None:
        self._is_taken = False
        self._soon = deque[asyncio.Future[None]]()
        self._later = deque[asyncio.Future[None]]()

    @property
    def is_taken(self) -> bool:
        """Whether somebody holds the turn."""
        return self._is_taken

    @property
    def waiting_soon(self) -> int:
        """How many wait with `soon`."""
        return len(self._soon)

    @asynccontextmanager
    async def taken(self, soon: bool = False) -> AsyncIterator[None]:
        """Waits for the turn and holds it."""
        await self._take(self._soon if soon else self._later)
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
        while waiting := self._soon or self._later:
            given = waiting.popleft()
            if not given.done():
                given.set_result(None)
                return
        self._is_taken = False
