"""Observes and stops a search from outside."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evoengine.duration import duration
from evoengine.events import Observer, RunEnded
from evoengine.records import EndKind

T = TypeVar("T")


@dataclass
class Control:
    """The observer, stop signals and environment of a search; none of them changes its results.

    `stop` ends it once the replies that are paid for are stored, `stop_now` without them.
    Keys and addresses are read from `environ`.
    """

    observe: Observer
    stop: asyncio.Event
    stop_now: asyncio.Event
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    time_limit_s: float | None = None  # of this process
    _timed_out: bool = field(default=False, init=False)

    def ended(self, when: str = "") -> RunEnded:
        """How the process ends once `stop` is set: by what, and `when`, e.g. before what."""
        if not self._timed_out:
            return RunEnded(f"interrupted{when}", EndKind.interrupted)
        limit = duration(self.time_limit_s or 0)
        return RunEnded(f"the time limit of {limit} is reached{when}", EndKind.time)

    async def unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """The result of `work`; None if `stop` is set before it ends, which cancels it."""
        working = asyncio.create_task(work)
        stopping = asyncio.create_task(self.stop.wait())
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
            return None
        return working.result()

    @contextmanager
    def within_time_limit(self) -> Iterator[None]:
        """Sets `stop` if the time limit is reached within the block; needs a running event loop."""
        if self.time_limit_s is None:
            yield
            return
        timer = asyncio.get_running_loop().call_later(self.time_limit_s, self._time_out)
        try:
            yield
        finally:
            timer.cancel()

    def _time_out(self) -> None:
        self._timed_out = not self.stop.is_set()
        self.stop.set()
