"""The worker of the emulator: what runs in a process forked from the nursery.

Importing this module imports torch and llvmlite, which is the nursery's whole purpose; no thread
is started and nothing is compiled until a task is started.
"""

from __future__ import annotations

import socket
from pathlib import Path

from evoengine.evaluate.wire import Start
from evoengine.evaluate.worker.emulated.session import EmulatedSession
from evoengine.evaluate.worker.judge import Doing
from evoengine.evaluate.worker.reference import AtWork
from evoengine.evaluate.worker.serving import Worker


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
