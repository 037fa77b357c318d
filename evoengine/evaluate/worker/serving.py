"""A device worker's talk with its parent, whatever the device is.

It reads requests from its connection and answers on it; standard output and error are
left to device printf and to libraries.
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
    Ready,
    Run,
    Start,
    StepBegun,
)
from evoengine.evaluate.worker import judge
from evoengine.evaluate.worker.task_functions import AtWork
from evoengine.protocols import Job, Report
from evoengine.records import Environment


class Session(Protocol):
    """A device brought up for one task."""

    environment: Environment

    def run(self, job: Job) -> tuple[Report, bool]:
        """The report on `job`, and whether this process may go on."""
        ...


# brings the device up; raises DeviceError, TaskError
Open = Callable[[Start, judge.Doing, AtWork], Session]


class Worker:
    """Serves one parent until it hangs up."""

    def __init__(self, connection: socket.socket, open_session: Open) -> None:
        self.connection = connection
        self.open_session = open_session
        self.current = 0  # id of the request under way
        self.now = StepBegun(id=0, what="starting", candidate=False)
        self.session: Session | None = None

    def serve(self) -> None:
        with self.connection.makefile("rb") as requests:
            for line in requests:
                request = REQUEST.validate_json(line)
                self.current = request.id
                self.now = StepBegun(id=request.id, what="starting", candidate=False)
                try:
                    healthy = self._handle(request)
                except Exception as error:  # noqa: BLE001 - the top of the worker: every fault of ours reaches the parent as one
                    self._fail(error)
                    healthy = False
                if not healthy:
                    os._exit(0)  # a broken context can hang in its destructors

    def _handle(self, request: Start | Run) -> bool:
        if isinstance(request, Start):
            self.session = self.open_session(request, self._doing, self._at_work)
            self._send(Ready(id=request.id, environment=self.session.environment))
            return True
        if self.session is None:
            raise RuntimeError("asked to run a job before start")
        report, healthy = self.session.run(request.job)
        self._send(Done(id=request.id, report=report, healthy=healthy))
        return healthy

    def _doing(self, what: str, candidate: bool) -> None:
        self._tell(StepBegun(id=self.current, what=what, candidate=candidate))

    @contextmanager
    def _at_work(self, what: str, function: str) -> Iterator[None]:
        """Inside, the time is that of one of the task's functions; afterwards it is whose it was
        before.
        """
        before = self.now
        self._tell(StepBegun(id=self.current, what=what, candidate=False, function=function))
        try:
            yield
        finally:
            self._tell(before)

    def _tell(self, doing: StepBegun) -> None:
        self.now = doing
        self._send(doing)

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

    def _send(self, message: Ready | StepBegun | Done | Failed) -> None:
        self.connection.sendall(message.model_dump_json().encode() + b"\n")


def _text(words: str) -> str:
    """`words` as JSON can carry them: an exception of the task's functions may hold half a
    character.
    """
    return words.encode("utf-8", "replace").decode()
