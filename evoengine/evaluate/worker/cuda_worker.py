"""The worker of a CUDA device, which runs in a process forked from the fork server.

The fork server imports this module once, and torch and CuPy with it; CUDA is not initialized
before a task is started.
"""

from __future__ import annotations

import socket
from pathlib import Path

from evoengine.evaluate.device.worker_protocol import Start
from evoengine.evaluate.worker.backend import Announce
from evoengine.evaluate.worker.cuda_session import CudaSession
from evoengine.evaluate.worker.serving import Worker
from evoengine.evaluate.worker.task_functions import AnnounceFunction


def serve(connection: socket.socket, arguments: list[str]) -> None:
    """Serves one parent until it closes `connection`; `arguments`: the device's ordinal."""

    def open_session(
        start: Start, announce: Announce, announce_function: AnnounceFunction
    ) -> CudaSession:
        return CudaSession(
            start.task, Path(start.task_path), int(arguments[0]), announce, announce_function
        )

    Worker(connection, open_session).serve()
