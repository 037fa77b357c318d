"""The runners of a grader: pairs by number, as the parent hands them over and ends them."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from evoengine.evaluate.device.worker_protocol import Runners
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.runner_client import RunnerGone


class RunnerTable:
    """All runners that live."""

    def __init__(self, source: socket.socket) -> None:
        """`source` is where the parent sends the connections of new runners."""
        self._source = source
        self._pairs: dict[int, PairClient] = {}

    def update(self, runners: Runners) -> None:
        """Closes the connections of those that are gone, and receives the new ones; raises
        RunnerGone where one did not start.
        """
        for number in runners.gone:
            if (pair := self._pairs.pop(number, None)) is not None:
                pair.close()
        failed: RunnerGone | None = None
        for number in runners.new:  # all, or the next request would receive one of these
            try:
                self._pairs[number] = PairClient.received(self._source)
            except RunnerGone as error:
                failed = error
        if failed is not None:
            raise failed

    def pair(self, number: int) -> PairClient:
        """One pair."""
        return self._pairs[number]

    def drop(self, hidden: bool, numbers: Sequence[int]) -> None:
        """Has slots of hidden cases, or of shown ones, unmapped by all runners that know them."""
        for pair in self._pairs.values():
            pair.drop(hidden, numbers)
