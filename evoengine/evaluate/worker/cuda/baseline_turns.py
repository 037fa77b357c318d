"""The baseline's turns beside a candidate: how many calls the next one has is drawn ahead, so that
it can be captured while the device compares what the candidate put out.
"""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.evaluate.worker.cuda.call_counts import CallRange, draw_cold
from evoengine.evaluate.worker.cuda.input_pool import PoolSet


class BaselineTurns:
    """Replays of one kind, hot or cold; each has new buffers and is captured anew."""

    def __init__(self, replays: BaselineReplays, calls: CallRange, cold: bool) -> None:
        self._replays = replays
        self._calls = calls
        self._cold = cold
        self.count = self._draw()  # of the calls of the next turn

    def prepare(self) -> None:
        """Captures the next turn, if that was not done; the device does nothing for it."""
        self._replays.prepare(self.count, self._cold)

    def take(self, sets: Sequence[PoolSet]) -> tuple[float, ...]:
        """Replays `count` calls on `sets`: times in microseconds, as Examined.times_us."""
        self.prepare()
        times_us = self._replays.replay(sets, self._cold)
        self.count = self._draw()
        return times_us

    @property
    def gaps_us(self) -> tuple[float, ...]:
        """Of the last turn, as Examined.gaps_us."""
        return self._replays.gaps_us

    @property
    def host_gap_us(self) -> float:
        """Of the last turn, as Examined.host_gap_us."""
        return self._replays.host_gap_us

    def _draw(self) -> int:
        return draw_cold() if self._cold else self._calls.draw()
