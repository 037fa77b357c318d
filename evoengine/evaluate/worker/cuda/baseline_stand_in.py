"""A baseline in the candidate's place: its time against itself is known, it is 1.

A benchmark measures with it whether intervals are true; no verdict does.
"""

from __future__ import annotations

from collections.abc import Sequence

from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS
from evoengine.evaluate.worker.cuda.examination import Examined, Meanwhile
from evoengine.evaluate.worker.cuda.input_pool import PoolSet


class BaselineStandIn:
    """Replays as an Examination does, of a baseline in this process, whose outputs are trusted."""

    def __init__(self, replays: BaselineReplays) -> None:
        """`replays` are not those that it is timed against: each side has its own buffers."""
        self._replays = replays

    def replay(
        self, sets: Sequence[PoolSet], cold: bool, meanwhile: Meanwhile = lambda: None
    ) -> Examined:
        """One replay of the sets after the first WARM_UP_CALLS; the baseline warms up by itself."""
        given = sets[WARM_UP_CALLS:]
        self._replays.prepare(len(given), cold)  # a candidate's buffers lie elsewhere every time
        times_us = self._replays.replay(given, cold)
        meanwhile()
        return Examined(times_us, (), self._replays.gaps_us)
