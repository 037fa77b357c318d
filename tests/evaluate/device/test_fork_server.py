"""The two roles that the fork server gives a process, and the sockets that it passes on."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evoengine.evaluate.device.fork_client import ForkedWorker, ForkServer
from evoengine.evaluate.device.worker_process import WorkerProcess


def played(scene: Callable[[ForkServer], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        server = ForkServer("tests.evaluate.device.role_worker", ["0", "more"])
        try:
            return await scene(server)
        finally:
            await server.close()

    return asyncio.run(run())


async def heard(server: ForkServer, worker: ForkedWorker, *more: socket.socket) -> list[str]:
    """What a worker said on its sockets, after it has ended."""
    assert await server.wait(worker.pid) == 0
    os.close(worker.log)
    found = []
    for connection in (worker.connection, *more):
        with connection:
            found.append(connection.recv(1000).decode())
            assert connection.recv(1000) == b"", "no other process holds it open"
    return found


@pytest.mark.parametrize(("beside", "role"), [(False, "serve"), (True, "serve_runner")])
def test_a_worker_runs_in_its_role_with_the_modules_arguments_in_a_group_of_its_own(
    beside: bool, role: str
) -> None:
    async def scene(server: ForkServer) -> Any:
        worker = await server.fork(beside)
        return worker.pid, await heard(server, worker)

    pid, said = played(scene)
    assert said == [f"{role} 0 more {pid} True"]


def test_one_more_socket_is_passed_on_and_stays_the_callers_to_close() -> None:
    async def scene(server: ForkServer) -> Any:
        ours, theirs = socket.socketpair()
        with theirs:
            worker = await server.fork(more=[theirs])
        return worker.pid, await heard(server, worker, ours)

    pid, said = played(scene)
    assert said == [f"serve 0 more {pid} True"] * 2


def test_both_roles_come_from_one_server_in_any_order() -> None:
    async def scene(server: ForkServer) -> list[str]:
        found = []
        for beside in (True, False, True, True, False):
            found += await heard(server, await server.fork(beside))
        return [words.split()[0] for words in found]

    assert played(scene) == ["serve_runner", "serve", "serve_runner", "serve_runner", "serve"]


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.sampled("steps", one_in=3)
@pytest.mark.parametrize("steps", range(8))
def test_a_start_that_is_cancelled_at_any_step_leaves_nothing_open(steps: int) -> None:
    async def scene(server: ForkServer) -> tuple[int, int]:
        worker = await server.fork()
        await heard(server, worker)  # the server runs
        before = open_descriptors()
        process = WorkerProcess(server)
        starting = asyncio.create_task(process.spawn())
        while process.pid is None:  # noqa: ASYNC110 - each step counts
            await asyncio.sleep(0)
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait([starting])
        await process.kill()
        for _ in range(3):  # a transport closes its descriptor a step after it was told to
            await asyncio.sleep(0)
        return before, open_descriptors()

    before, after = played(scene)
    gc.collect()  # a socket that nobody closed warns here, and a warning fails a test
    assert after == before
