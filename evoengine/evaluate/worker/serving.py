"""The loop of a device worker: requests of its parent in, reports out, on any device.

Both go over the connection; standard output and error are left to device printf and to
libraries.
"""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from evoengine.errors import DeviceError, TaskError
from evoengine.evaluate.device.worker_protocol import (
    REQUEST,
    Done,
    Failed,
    FaultKind,
    RaceDone,
    Ready,
    Run,
    Runners,
    RunRace,
    Start,
    StepBegun,
)
from evoengine.evaluate.worker.backend import Announce
from evoengine.evaluate.worker.task_functions import AnnounceFunction
from evoengine.protocols import Job, RaceReport, Report
from evoengine.records import Environment


class Session(Protocol):
    """A device that was started for one task."""

    environment: Environment

    @property
    def has_device(self) -> bool:
        """Whether this process can run another job; a device that broke comes back in a new one."""
        ...

    def run(self, job: Job, runners: Runners) -> tuple[Report, bool]:
        """The report on `job`, and whether the process that ran it may run the next one."""
        ...

    def race(self, newcomer: Job, holder: Job, runners: Runners) -> RaceReport:
        """The report on a race; raises DeviceError where times are modelled."""
        ...


# starts the device; raises DeviceError, TaskError
OpenSession = Callable[[Start, Announce, AnnounceFunction], Session]


class Worker:
    """Serves one parent until it closes the connection."""

    def __init__(
        self, connection: socket.socket, open_session: OpenSession, has_runner: bool = False
    ) -> None:
        self.connection = connection
        self.open_session = open_session
        self.current = 0  # id of the current request
        self.step = StepBegun(id=0, what="starting", candidate=False)
        self.session: Session | None = None
        # whether candidates run in another process: this one is healthy whatever they do
        self.has_runner = has_runner

    def serve(self) -> None:
        with self.connection.makefile("rb") as requests:
            for line in requests:
                request = REQUEST.validate_json(line)
                self.current = request.id
                self.step = StepBegun(id=request.id, what="starting", candidate=False)
                try:
                    healthy = self._handle(request)
                except Exception as error:  # noqa: BLE001 - the top of the worker: every fault of ours is reported to the parent
                    self._fail(error)
                    healthy = False
                if not healthy:
                    os._exit(0)  # a broken context can hang in its destructors

    def _handle(self, request: Start | Run | RunRace) -> bool:
        if isinstance(request, Start):
            self.session = self.open_session(request, self._announce, self._announce_function)
            self._send(Ready(id=request.id, environment=self.session.environment))
            return True
        if self.session is None:
            raise RuntimeError("asked to run a job before start")
        if isinstance(request, RunRace):
            race = self.session.race(request.newcomer, request.holder, request.runners)
            self._send(RaceDone(id=request.id, report=race))
            return True
        report, healthy = self.session.run(request.job, request.runners)
        is_last = not self.session.has_device
        self._send(Done(id=request.id, report=report, healthy=healthy, is_last=is_last))
        return (healthy or self.has_runner) and not is_last

    def _announce(self, step: str, candidate: bool) -> None:
        self._begin(StepBegun(id=self.current, what=step, candidate=candidate))

    @contextmanager
    def _announce_function(self, step: str, function: str) -> Iterator[None]:
        """Charges the time inside to one of the task's functions, afterwards to the step before."""
        before = self.step
        self._begin(StepBegun(id=self.current, what=step, candidate=False, function=function))
        try:
            yield
        finally:
            self._begin(before)

    def _begin(self, step: StepBegun) -> None:
        self.step = step
        self._send(step)

    def _fail(self, error: Exception) -> None:
        kind: FaultKind = (
            "task"
            if isinstance(error, TaskError)
            else "device"
            if isinstance(error, DeviceError)
            else "worker"
        )
        message = str(error) if kind != "worker" else f"{type(error).__name__}: {error}"
        self._send(
            Failed(
                id=self.current,
                error=kind,
                message=_text(message),
                traceback=_text(traceback.format_exc()),
            )
        )

    def _send(self, message: Ready | StepBegun | Done | RaceDone | Failed) -> None:
        self.connection.sendall(message.model_dump_json().encode() + b"\n")


def _text(words: str) -> str:
    """`words` as valid UTF-8: an exception of the task's functions may hold a lone surrogate."""
    return words.encode("utf-8", "replace").decode()
