"""The grader's side of its runners: hidden cases run in a process that never runs a shown one."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from evoengine.evaluate.worker.candidate_failures import Crashed
from evoengine.evaluate.worker.cuda.runner_client import RunnerClient
from evoengine.protocols import CompiledCase


@dataclass(frozen=True)
class PairClient:
    """The runners for shown and for hidden cases."""

    shown: RunnerClient
    hidden: RunnerClient | None  # None where the task has no hidden cases

    @classmethod
    def received(cls, runners: socket.socket) -> PairClient:
        """The pair whose connections the parent has sent; waits until both are ready.

        Raises RunnerGone.
        """
        _, descriptors, _, _ = socket.recv_fds(runners, 1, 2)
        with ExitStack() as to_close:  # unless both are ready
            connections = [
                to_close.enter_context(socket.socket(fileno=descriptor))
                for descriptor in descriptors
            ]
            clients = list[RunnerClient]()
            for connection in connections:
                clients.append(RunnerClient(connection))
                to_close.callback(clients[-1].close)
            to_close.pop_all()
        shown, *hidden = clients
        return cls(shown, next(iter(hidden), None))

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
