"""How a search is watched and stopped from outside."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from evoengine.duration import duration
from evoengine.events import Observer


@dataclass
class Control:
    """What a search is given beside its settings; none of it changes what it finds.

    `stop` ends it after what was paid for is stored, `drop` gives that up as well.
    `environ` is the environment that keys and addresses are read from.
    """

    observe: Observer
    stop: asyncio.Event
    drop: asyncio.Event
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    time_limit_s: float | None = None  # of this process
    _over: bool = field(default=False, init=False)

    @property
    def why(self) -> str:
        """What set `stop`."""
        return (
            f"the time limit of {duration(self.time_limit_s or 0)} is over"
            if self._over
            else "interrupted"
        )

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Sets `stop` once the time limit is over; needs a running loop."""
        if self.time_limit_s is None:
            yield
            return
        timer = asyncio.get_running_loop().call_later(self.time_limit_s, self._end)
        try:
            yield
        finally:
            timer.cancel()

    def _end(self) -> None:
        self._over = not self.stop.is_set()
        self.stop.set()
