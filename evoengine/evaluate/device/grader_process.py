"""The grader's process, and the pairs of runners that it has."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

from evoengine.errors import TaskError, WorkerError
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.runner_pair import RunnerPair
from evoengine.evaluate.device.step_failures import (
    KILLED,
    function_ended_process,
    function_too_slow,
    killed_from_outside,
)
from evoengine.evaluate.device.worker_device import START_S
from evoengine.evaluate.device.worker_process import StepTimeout, WorkerDied, WorkerProcess
from evoengine.evaluate.device.worker_protocol import Ready, Runners, Start
from evoengine.records import Environment
from evoengine.task.schema import Task


class GraderProcess(WorkerProcess):
    """A forked grader; the connections of its runners go to it over a socket of their own."""

    def __init__(self, fork_server: ForkServer) -> None:
        super().__init__(fork_server)
        self.has_profiler = False  # whether it has measured kernel activity
        self._runners: socket.socket | None = None  # where it gets runners from
        self._last_number = 0  # of a pair that was handed over
        self._gone: list[int] = []  # pairs that ended since its last request

    async def start(self, task: Task, task_path: str, code_folder: Path | None) -> Environment:
        """Forks it and starts its device; it does not outlive a failure. Raises DeviceError,
        TaskError or WorkerError.
        """
        folder = str(code_folder or "")
        self._runners, theirs = socket.socketpair()
        try:
            with theirs:
                await self.spawn(theirs)
            answer = await self.ask(
                lambda number: Start(id=number, task=task, task_path=task_path, code_folder=folder),
                lambda _: None,
                START_S,
                START_S,
            )
        except BaseException as error:
            log = self.log
            await self.kill()
            if isinstance(error, StepTimeout | WorkerDied):
                raise WorkerError(f"the grader did not start: {error}: {log[-500:]}") from error
            raise
        assert isinstance(answer, Ready)
        return answer.environment

    def runners_of(
        self, pairs: Sequence[RunnerPair], standing_by: Sequence[RunnerPair] = ()
    ) -> Runners:
        """What a request says of runners: those of `pairs` are used, those `standing_by` map memory
        meanwhile. Hands over the pairs that it does not have yet; raises WorkerError.
        """
        assert self._runners is not None
        new = [pair for pair in (*pairs, *standing_by) if not pair.handed_over]
        for pair in new:
            self._last_number += 1
            try:
                pair.hand_over(self._runners, self._last_number)
            except OSError as error:
                raise WorkerError(f"the grader ended between two candidates: {error}") from error
        gone, self._gone = self._gone, []
        return Runners(
            used=tuple(pair.number for pair in pairs),
            new=tuple(pair.number for pair in new),
            gone=tuple(gone),
        )

    def note_ended(self, pairs: Sequence[RunnerPair]) -> None:
        """Its next request says that those of `pairs` that it has are gone; a pair may be noted
        twice: when it is too slow, and when its race has ended.
        """
        ended = [pair.number for pair in pairs if pair.handed_over]
        self._gone += [number for number in ended if number not in self._gone]

    def send_kill(self) -> None:
        """Sends SIGKILL to its process group; no runner can be handed over any more."""
        if self._runners is not None:
            self._runners.close()
            self._runners = None
        super().send_kill()


def grader_too_slow(error: StepTimeout, task_path: str) -> TaskError | WorkerError:
    """Its step took too long without a candidate's code."""
    if error.step.function:
        return function_too_slow(error, task_path)
    return WorkerError(f"the grader is stuck: {error}")


def grader_died(error: WorkerDied) -> TaskError | WorkerError:
    """Its end, which no candidate can cause."""
    if error.how == KILLED:
        return WorkerError(killed_from_outside(error))
    if error.step.function:
        return function_ended_process(error)
    return WorkerError(f"the grader died: {error}: {error.log[-500:]}")
