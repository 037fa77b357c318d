"""The device worker's program: `python -m evoengine.evaluate.worker.main --fd N --ordinal N`.

It reads requests from the inherited socket `--fd` and answers on it; standard output and
error are left to device printf and to libraries. It ends with its parent.
"""

from __future__ import annotations

import argparse
import os
import socket
import traceback
from pathlib import Path

from evoengine.errors import DeviceError, TaskError
from evoengine.evaluate import lifeline
from evoengine.evaluate.wire import REQUEST, Doing, Done, Failed, Ready, Run, Start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--ordinal", type=int, required=True)
    arguments = parser.parse_args()
    lifeline.die_with_parent()
    Worker(socket.socket(fileno=arguments.fd), arguments.ordinal).serve()


class Worker:
    """Serves one parent until it hangs up."""

    def __init__(self, connection: socket.socket, ordinal: int) -> None:
        self.connection = connection
        self.ordinal = ordinal
        self.current = 0  # id of the request under way
        self.session = None

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
                    os._exit(0)  # a broken CUDA context can hang in its destructors

    def _handle(self, request: Start | Run) -> bool:
        if isinstance(request, Start):
            from evoengine.evaluate.worker.session import Session  # torch and CuPy: seconds, so not before the parent asks

            self.session = Session(request.task, Path(request.task_path), self.ordinal, self._doing)
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
        kind = "task" if isinstance(error, TaskError) else "device" if isinstance(error, DeviceError) else "worker"
        message = str(error) if kind != "worker" else f"{type(error).__name__}: {error}"
        self._send(Failed(id=self.current, error=kind, message=message, traceback=traceback.format_exc()))

    def _send(self, message: Ready | Doing | Done | Failed) -> None:
        self.connection.sendall(message.model_dump_json().encode() + b"\n")


if __name__ == "__main__":
    main()
