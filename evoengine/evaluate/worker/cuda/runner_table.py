"""The runners of a grader: pairs by number, as the parent hands them over and ends them."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from evoengine.evaluate.device.worker_protocol import Runners
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.pair_client import PairClient


class RunnerTable:
    """All runners that live."""

    def __init__(self, source: socket.socket) -> None:
        """`source` is where the parent sends the connections of new runners."""
        self._source = source
        self._pairs: dict[int, PairClient] = {}

    def update(self, runners: Runners) -> None:
        """Closes the connections of those that are gone, receives the new ones, and waits until
        those that are used are ready; raises RunnerGone where one did not start.
        """
        for number in runners.gone:
            if (pair := self._pairs.pop(number, None)) is not None:
                pair.close()
        for number in runners.new:
            self._pairs[number] = PairClient.received(self._source)
        for number in runners.used:
            if self._pairs[number].is_new:
                self._pairs[number].wait()

    def map_ahead(self, harness: GpuHarness) -> None:
        """Lets those that stand by begin to map the slots that candidates will use, which takes a
        new one a while. Waits for nothing.
        """
        shown, hidden = harness.slots_of(False).all, harness.slots_of(True).all
        for pair in self._pairs.values():
            if pair.is_new:
                pair.map_ahead(shown, hidden)

    def pair(self, number: int) -> PairClient:
        """One pair."""
        return self._pairs[number]

    def drop(self, hidden: bool, numbers: Sequence[int]) -> None:
        """Has slots of hidden cases, or of shown ones, unmapped by all runners that know them."""
        for pair in self._pairs.values():
            pair.drop(hidden, numbers)
