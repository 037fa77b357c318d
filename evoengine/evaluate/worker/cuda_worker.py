"""The processes of a CUDA device, all forked from the fork server.

The grader owns everything that a candidate must not know; runners run candidates. The fork
server imports this module once, and torch and CuPy with it; CUDA is not initialized before a
process is forked.
"""

from __future__ import annotations

import socket
from pathlib import Path

from evoengine.evaluate.device.worker_protocol import Start
from evoengine.evaluate.worker.backend import Announce
from evoengine.evaluate.worker.code_folders import forget_code_folders, use_code_folder
from evoengine.evaluate.worker.cuda.runner import runner_loop
from evoengine.evaluate.worker.cuda_session import CudaSession
from evoengine.evaluate.worker.serving import Worker
from evoengine.evaluate.worker.task_functions import AnnounceFunction


def serve(connection: socket.socket, arguments: list[str], runners: socket.socket) -> None:
    """Grades for one parent until it closes `connection`; `arguments`: the device's ordinal.

    Over `runners` the parent sends the connections of runners.
    """

    def open_session(
        start: Start, announce: Announce, announce_function: AnnounceFunction
    ) -> CudaSession:
        if start.code_folder:
            use_code_folder(Path(start.code_folder))
        return CudaSession(
            start.task,
            Path(start.task_path),
            int(arguments[0]),
            announce,
            announce_function,
            runners,
        )

    Worker(connection, open_session, has_runner=True).serve()


def serve_runner(connection: socket.socket, arguments: list[str]) -> None:
    """Runs candidates for one grader until it closes `connection`."""
    forget_code_folders()
    runner_loop.serve(connection, int(arguments[0]))
