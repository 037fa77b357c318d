"""The worker of the emulator, which runs in a process forked from the fork server.

The fork server imports this module once, and torch and llvmlite with it; no thread is started and
nothing is compiled before a task is started.
"""

from __future__ import annotations

import os
import resource
import socket
from pathlib import Path

from evoengine.evaluate.device.worker_protocol import Start
from evoengine.evaluate.worker.backend import Announce
from evoengine.evaluate.worker.emulated_session import EmulatedSession
from evoengine.evaluate.worker.serving import Worker
from evoengine.evaluate.worker.task_functions import AnnounceFunction

LOWEST_PRIORITY = 19


def serve(connection: socket.socket, arguments: list[str]) -> None:
    """Serves one parent until it closes `connection`.

    `arguments`: target, threads, checks separated by commas, cache folder of references, and the
    most bytes of memory of a worker beside a GPU (0: there is none).
    """
    target, threads, checks, cache_dir, memory_bytes = arguments
    if int(memory_bytes):
        _give_way(int(memory_bytes))
    wanted = [name for name in checks.split(",") if name]

    def open_session(
        start: Start, announce: Announce, announce_function: AnnounceFunction
    ) -> EmulatedSession:
        return EmulatedSession(
            start.task,
            Path(start.task_path),
            target,
            int(threads),
            wanted,
            Path(cache_dir),
            announce,
            announce_function,
        )

    Worker(connection, open_session).serve()


def _give_way(memory_bytes: int) -> None:
    """Leaves the GPU, and what a verdict on it needs of this machine, to others."""
    # what can be written, so not the addresses that an emulator reserves; children inherit it
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    os.nice(LOWEST_PRIORITY)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before any function of the task may ask for one
