"""Pairs of runners that have run nothing: a process takes a third of a second to start its device.

Meanwhile the driver makes others wait, above all one that maps memory, as every new runner does. So
they are started when nobody needs the device, and otherwise only for jobs that need one and wait.
While they stand by they map the memory that candidates will use.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from evoengine.evaluate.device.runner_pair import RunnerPair


class SparePairs:
    """Pairs that stand by; the one that began to start first is taken first."""

    def __init__(self, spawn: Callable[[], Awaitable[RunnerPair]], count: int) -> None:
        """`spawn` returns a pair that begins to start; `count` stand by."""
        self._spawn = spawn
        self._count = count
        self._pairs = deque[RunnerPair]()
        self._refilling = asyncio.Lock()  # who refills beside another one would start too many

    @property
    def pairs(self) -> tuple[RunnerPair, ...]:
        """Those that stand by, the next one to be taken first."""
        return tuple(self._pairs)

    async def refill(self, needed: int | None = None) -> None:
        """Lets as many pairs start as are missing, or as are missing for `needed` jobs."""
        wanted = self._count if needed is None else min(needed, self._count)
        async with self._refilling:
            while len(self._pairs) < wanted:
                self._pairs.append(await self._spawn())

    async def take(self) -> RunnerPair:
        """A pair that has run nothing."""
        return self._pairs.popleft() if self._pairs else await self._spawn()

    def clear_handed_over(self) -> list[RunnerPair]:
        """Keeps none that a grader has; those that it had, to be killed with it."""
        pairs = [pair for pair in self._pairs if pair.handed_over]
        self._pairs = deque(pair for pair in self._pairs if not pair.handed_over)
        return pairs

    def clear(self) -> list[RunnerPair]:
        """Keeps none; all that stood by, to be killed."""
        pairs = list(self._pairs)
        self._pairs.clear()
        return pairs
