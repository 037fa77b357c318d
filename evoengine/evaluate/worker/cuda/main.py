"""The worker of a CUDA device: what runs in a process forked from the nursery.

Importing this module imports torch and CuPy, which is the nursery's whole purpose, and
leaves CUDA alone until a task is started.
"""

from __future__ import annotations

import socket
from pathlib import Path

from evoengine.evaluate.wire import Start
from evoengine.evaluate.worker.cuda.session import CudaSession
from evoengine.evaluate.worker.judge import Doing
from evoengine.evaluate.worker.reference import AtWork
from evoengine.evaluate.worker.serving import Worker


def serve(connection: socket.socket, arguments: list[str]) -> None:
    """Answers one parent until it hangs up; `arguments` holds the device's number."""

    def open_session(start: Start, doing: Doing, at_work: AtWork) -> CudaSession:
        return CudaSession(start.task, Path(start.task_path), int(arguments[0]), doing, at_work)

    Worker(connection, open_session).serve()
