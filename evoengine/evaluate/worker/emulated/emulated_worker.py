"""The worker of the emulator: what runs in a process forked from the fork server.

Importing this module imports torch and llvmlite, which is the fork server's whole purpose; no
thread is started and nothing is compiled until a task is started.
"""

from __future__ import annotations

import socket
from pathlib import Path

from evoengine.evaluate.device.worker_protocol import Start
from evoengine.evaluate.worker.emulated.emulated_session import EmulatedSession
from evoengine.evaluate.worker.judge import Doing
from evoengine.evaluate.worker.serving import Worker
from evoengine.evaluate.worker.task_functions import AtWork


def serve(connection: socket.socket, arguments: list[str]) -> None:
    """Answers one parent until it hangs up; `arguments`: target, threads, checks with commas,
    folder of answers.
    """
    target, threads, checks, answers = arguments
    wanted = [name for name in checks.split(",") if name]

    def open_session(start: Start, doing: Doing, at_work: AtWork) -> EmulatedSession:
        return EmulatedSession(
            start.task,
            Path(start.task_path),
            target,
            int(threads),
            wanted,
            Path(answers),
            doing,
            at_work,
        )

    Worker(connection, open_session).serve()
