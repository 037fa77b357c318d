"""Which processes on a GPU count as others: real processes, forked by a real fork server or not."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from evoengine.evaluate import gpu_processes
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.gpu_processes import is_ours, other_processes

WAITS = [sys.executable, "-c", "import sys; sys.stdin.read()", "a fork_server of another program"]


@pytest.fixture
def sees_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """As outside of a container."""
    monkeypatch.setattr(gpu_processes, "_sees_all_processes", lambda: True)


def test_another_program_counts_until_it_has_ended(sees_all: None) -> None:
    with subprocess.Popen(WAITS, stdin=subprocess.PIPE) as other:
        assert not is_ours(other.pid)
        assert other_processes([os.getpid(), other.pid, other.pid]) == 1
        other.communicate()
    assert other_processes([os.getpid(), other.pid]) == 0


def test_what_a_fork_server_of_this_user_forks_is_ours_also_where_it_belongs_to_another_run(
    sees_all: None,
) -> None:
    async def scene() -> tuple[bool, int | None]:
        server = ForkServer("tests.evaluate.device.scripted_worker")
        try:
            worker = await server.fork()
            found = is_ours(worker.pid), other_processes([os.getpid(), worker.pid])
            worker.connection.close()
            os.close(worker.log)
            await server.wait(worker.pid)
            return found
        finally:
            await server.close()

    assert asyncio.run(scene()) == (True, 0)


@pytest.mark.parametrize("pids", [None, (), (1,)])
def test_without_this_process_among_them_the_number_is_unknown(
    sees_all: None, pids: tuple[int, ...] | None
) -> None:
    assert other_processes(pids) is None


def test_in_a_container_others_are_counted_and_their_absence_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_processes, "_ALL_PROCESSES", "pid:[1]")
    assert other_processes([os.getpid()]) is None
    with subprocess.Popen(WAITS, stdin=subprocess.PIPE) as other:
        assert other_processes([os.getpid(), other.pid]) == 1
        other.communicate()
