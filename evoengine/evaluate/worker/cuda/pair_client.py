"""The grader's side of its runners: hidden cases run in a process that never runs a shown one."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from evoengine.evaluate.worker.candidate_failures import Crashed
from evoengine.evaluate.worker.cuda.runner_client import RunnerClient
from evoengine.evaluate.worker.cuda.slots import Slot
from evoengine.protocols import CompiledCase


@dataclass(frozen=True)
class PairClient:
    """The runners for shown and for hidden cases."""

    shown: RunnerClient
    hidden: RunnerClient | None  # None where the task has no hidden cases

    @classmethod
    def received(cls, runners: socket.socket) -> PairClient:
        """The pair whose connections the parent has sent; both may still be starting."""
        _, descriptors, _, _ = socket.recv_fds(runners, 1, 2)
        shown, *hidden = [RunnerClient(socket.socket(fileno=one)) for one in descriptors]
        return cls(shown, next(iter(hidden), None))

    @property
    def is_new(self) -> bool:
        """Whether it has loaded no candidate yet."""
        return self.shown.is_new and (self.hidden is None or self.hidden.is_new)

    def wait(self) -> None:
        """Waits until both are ready; raises CandidateFailure, RunnerGone where one has ended."""
        self.shown.wait()
        if self.hidden is not None:
            self.hidden.wait()

    def map_ahead(self, shown: Iterable[Slot], hidden: Iterable[Slot]) -> None:
        """Lets both begin to map the slots of their cases, as RunnerClient.map_ahead."""
        self.shown.map_ahead(shown)
        if self.hidden is not None:
            self.hidden.map_ahead(hidden)

    def runner_of(self, compiled: CompiledCase) -> RunnerClient:
        """The one that runs this case."""
        if not compiled.plan.hidden:
            return self.shown
        assert self.hidden is not None
        return self.hidden

    def drop(self, hidden: bool, numbers: Sequence[int]) -> None:
        """Has slots of hidden cases, or of shown ones, unmapped; one that has ended has none."""
        runner = self.hidden if hidden else self.shown
        if runner is not None:
            with suppress(Crashed):
                runner.drop(numbers)

    def close(self) -> None:
        """Closes the connections; the runners end."""
        self.shown.close()
        if self.hidden is not None:
            self.hidden.close()
