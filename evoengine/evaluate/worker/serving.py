"""A device worker's talk with its parent, whatever the device is.

It reads requests from its connection and answers on it; standard output and error are
left to device printf and to libraries.
"""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable
from typing import Protocol

from evoengine.errors import DeviceError, TaskError
from evoengine.evaluate.wire import REQUEST, Doing, Done, Failed, FaultKind, Ready, Run, Start
from evoengine.evaluate.worker import judge
from evoengine.records import Environment
from evoengine.seams import Job, Report


class Session(Protocol):
    """A device brought up for one task."""

    environment: Environment

    def run(self, job: Job) -> tuple[Report, bool]:
        """The report on `job`, and whether this process may go on."""
        ...


Open = Callable[[Start, judge.Doing], Session]  # brings the device up; raises DeviceError, TaskError


class Worker:
    """Serves one parent until it hangs up."""

    def __init__(self, connection: socket.socket, open_session: Open) -> None:
        self.connection = connection
        self.open_session = open_session
        self.current = 0  # id of the request under way
        self.session: Session | None = None

    def serve(self) -> None:
        with self.connection.makefile("rb") as requests:
            for line in requests:
                request = REQUEST.validate_json(line)
                self.current = request.id
                try:
                    healthy = self._handle(request)
                except Exception as error:  # noqa: BLE001 - the top of the worker: every fault of ours reaches the parent as one
                    self._fail(error)
                    healthy = False
                if not healthy:
                    os._exit(0)  # a broken context can hang in its destructors

    def _handle(self, request: Start | Run) -> bool:
        if isinstance(request, Start):
            self.session = self.open_session(request, self._doing)
            self._send(Ready(id=request.id, environment=self.session.environment))
            return True
        if self.session is None:
            raise RuntimeError("asked to run a job before start")
        report, healthy = self.session.run(request.job)
        self._send(Done(id=request.id, report=report, healthy=healthy))
        return healthy

    def _doing(self, what: str, candidate: bool) -> None:
        self._send(Doing(id=self.current, what=what, candidate=candidate))

    def _fail(self, error: Exception) -> None:
        kind: FaultKind = "task" if isinstance(error, TaskError) else "device" if isinstance(error, DeviceError) else "worker"
        message = str(error) if kind != "worker" else f"{type(error).__name__}: {error}"
        self._send(Failed(id=self.current, error=kind, message=message, traceback=traceback.format_exc()))

    def _send(self, message: Ready | Doing | Done | Failed) -> None:
        self.connection.sendall(message.model_dump_json().encode() + b"\n")
