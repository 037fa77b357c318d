"""The worker of a CUDA device: what runs in a process forked from the fork server.

Importing this module imports torch and CuPy, which is the fork server's whole purpose, and
leaves CUDA alone until a task is started.
"""

from __future__ import annotations

import socket
from pathlib import Path

from evoengine.evaluate.device.worker_protocol import Start
from evoengine.evaluate.worker.cuda.cuda_session import CudaSession
from evoengine.evaluate.worker.judge import Doing
from evoengine.evaluate.worker.serving import Worker
from evoengine.evaluate.worker.task_functions import AtWork


def serve(connection: socket.socket, arguments: list[str]) -> None:
    """Answers one parent until it hangs up; `arguments` holds the device's number."""

    def open_session(start: Start, doing: Doing, at_work: AtWork) -> CudaSession:
        return CudaSession(start.task, Path(start.task_path), int(arguments[0]), doing, at_work)

    Worker(connection, open_session).serve()
