"""Grader and runner talk over a real pair of sockets; slots really pass as descriptors.

The runner's loop is the real one in a thread, or in a process of its own that is really killed; a
Python function stands for the candidate.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy
import pytest

from evoengine.candidate.binding import CasePlan
from evoengine.evaluate.device.worker_protocol import RUNNER_ENDED
from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Crashed
from evoengine.evaluate.worker.cuda.harness.runner_messages import MAX_DESCRIPTORS
from evoengine.evaluate.worker.cuda.harness.virtual_memory import PAGE_BYTES, VirtualMemoryError
from evoengine.evaluate.worker.cuda.runner import runner_loop
from evoengine.evaluate.worker.cuda.runner_client import RunnerClient, RunnerGone
from evoengine.protocols import CompiledCase
from tests.evaluate.worker.cuda.host_device import (
    ILLEGAL_ADDRESS,
    OUT_OF_MEMORY,
    TOTAL_BYTES,
    HostDriver,
    HostHarness,
    HostReplayer,
    connected_runner,
    host_bytes,
    install,
)

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> HostDriver:
    return install(monkeypatch)


@pytest.fixture
def client(driver: HostDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunnerClient]:
    with connected_runner(monkeypatch) as client:
        yield client


def compiled(behaviour: str = "honest", hidden: bool = False) -> CompiledCase:
    plan = CasePlan(case="plain", hidden=hidden, macros={}, scratch={}, launches=())
    return CompiledCase(plan=plan, code_path=behaviour, functions={})


def double(call: dict[str, int], _: int) -> None:
    host_bytes(call["out"], 64)[:] = 2 * host_bytes(call["x"], 64)


def calls_on(harness: HostHarness, count: int, size: int = 64) -> list[dict[str, Any]]:
    """Places for `count` calls of two buffers; every input holds the number of its call."""
    places = harness.slots.place([size, size] * count)
    calls = [
        dict(zip(("x", "out"), places[i : i + 2], strict=True)) for i in range(0, 2 * count, 2)
    ]
    for number, call in enumerate(calls):
        host_bytes(call["x"].address, 64)[:] = number
    return calls


def test_a_runner_writes_into_the_graders_slots_through_addresses_of_its_own(
    client: RunnerClient,
) -> None:
    seen: list[dict[str, int]] = []

    def watched(call: dict[str, int], number: int) -> None:
        seen.append(call)
        double(call, number)

    HostReplayer.behaviours["watched"] = watched
    harness = HostHarness()
    calls = calls_on(harness, 5)
    client.load(compiled("watched"), {"x": 4, "out": 4}, ("out",))
    replayed = client.replay(
        calls[:1], calls[1:], [(call["x"], 0) for call in calls[1:]], cold=True
    )
    assert len(replayed.event_us) == len(replayed.stamp_us) == 4
    for number, call in enumerate(calls):
        assert host_bytes(call["out"].address, 64).tolist() == [2 * number] * 64
    ours = {place.address for call in calls for place in call.values()}
    assert not ours & {address for call in seen for address in call.values()}
    assert client.unload() == TOTAL_BYTES


def test_every_slot_is_sent_once_however_many_there_are(
    client: RunnerClient, driver: HostDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    HostReplayer.behaviours["honest"] = double
    sent: list[int] = []
    send_fds = socket.send_fds

    def counted(connection: socket.socket, data: list[bytes], descriptors: list[int]) -> int:
        sent.append(len(descriptors))
        return send_fds(connection, data, descriptors)

    monkeypatch.setattr(socket, "send_fds", counted)
    harness = HostHarness()
    calls = calls_on(harness, 50)
    client.load(compiled(), {"x": 4, "out": 4}, ("out",))
    for _ in range(3):
        client.replay(calls[:1], calls[1:], [], cold=False)
    assert sent == [MAX_DESCRIPTORS, 100 - MAX_DESCRIPTORS]
    assert host_bytes(calls[-1]["out"].address, 64).tolist() == [98] * 64


def test_no_descriptor_stays_open_on_either_side(client: RunnerClient, driver: HostDriver) -> None:
    HostReplayer.behaviours["honest"] = double
    calls = calls_on(HostHarness(), 4)
    client.load(compiled(), {"x": 4, "out": 4}, ("out",))
    before, memories = len(list(Path("/proc/self/fd").iterdir())), len(driver.created)
    client.replay(calls[:1], calls[1:], [], cold=False)
    imported = len(driver.created) - memories
    assert len(list(Path("/proc/self/fd").iterdir())) == before + imported == before + 8


def test_slots_that_are_about_to_be_freed_are_unmapped_first_and_only_those_it_knows(
    client: RunnerClient, driver: HostDriver
) -> None:
    HostReplayer.behaviours["honest"] = double
    harness = HostHarness(slots_bytes=PAGE_BYTES)
    calls = calls_on(harness, 2)
    client.load(compiled(), {"x": 4, "out": 4}, ("out",))
    client.replay(calls[:1], calls[1:], [], cold=False)
    known, mapped = (
        len({place.slot.number for call in calls for place in call.values()}),
        len(driver.mapped),
    )
    client.drop([*(place.slot.number for call in calls for place in call.values()), 4711])
    assert len(driver.mapped) == mapped - known
    client.drop([4711])
    client.replay(calls[:1], calls[1:], [], cold=False)
    assert len(driver.mapped) == mapped, "they are sent again"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (lambda: cupy.cuda.runtime.CUDARuntimeError(OUT_OF_MEMORY), CannotLaunch),
        (lambda: cupy.cuda.runtime.CUDARuntimeError(1), CannotLaunch),  # invalid argument
        (lambda: cupy.cuda.runtime.CUDARuntimeError(ILLEGAL_ADDRESS), Crashed),
        (lambda: cupy.cuda.runtime.CUDARuntimeError(719), Crashed),  # launch failure
        (lambda: VirtualMemoryError("cuMemMap", 1), Crashed),
    ],
    ids=["memory", "argument", "address", "launch failure", "mapping"],
)
def test_a_failure_of_the_candidate_is_an_answer_and_a_broken_runner_ends_after_it(
    client: RunnerClient, error: Callable[[], Exception], kind: type
) -> None:
    def fails(_: dict[str, int], __: int) -> None:
        raise error()

    HostReplayer.behaviours |= {"fails": fails, "honest": double}
    calls = calls_on(HostHarness(), 2)
    client.load(compiled("fails"), {"x": 4, "out": 4}, ("out",))
    with pytest.raises(kind, match=re.escape(str(error()))):
        client.replay(calls[:1], calls[1:], [], cold=False)
    if kind is Crashed:
        with pytest.raises(RunnerGone, match=f"^{RUNNER_ENDED}$"):
            client.unload()
    else:
        client.load(compiled("honest"), {"x": 4, "out": 4}, ("out",))
        client.replay(calls[:1], calls[1:], [], cold=False)


def test_code_is_loaded_anew_after_every_replay_and_a_failure_of_that_is_told_to_who_waits(
    client: RunnerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def reload(_: HostReplayer) -> None:
        done.append("load")
        if len(done) > 3:
            raise cupy.cuda.runtime.CUDARuntimeError(1)

    HostReplayer.behaviours["told"] = lambda _, __: done.append("run")
    monkeypatch.setattr(HostReplayer, "reload", reload)
    calls = calls_on(HostHarness(), 1)
    client.load(compiled("told"), {"x": 4, "out": 4}, ("out",))
    client.replay(calls, [], [], cold=False)
    client.replay(calls, [], [], cold=False)
    with pytest.raises(CannotLaunch, match="cudaErrorInvalidValue"):
        client.wait()
    client.wait()
    assert done == ["run", "load", "run", "load"]
    assert client.unload() == TOTAL_BYTES


def test_what_a_candidate_prints_in_a_hidden_case_is_dropped_and_elsewhere_is_kept(
    client: RunnerClient, capfd: pytest.CaptureFixture[str]
) -> None:
    def prints(_: dict[str, int], number: int) -> None:
        os.write(1, f"call {number}\n".encode())

    HostReplayer.behaviours["prints"] = prints
    calls = calls_on(HostHarness(), 2)
    for hidden in (True, False, True):
        client.load(compiled("prints", hidden), {"x": 4, "out": 4}, ("out",))
        client.replay(calls[:1], calls[1:], [], cold=False)
    assert capfd.readouterr().out == "call 0\ncall 1\n"


def test_a_runner_that_is_killed_in_the_middle_of_a_request_is_gone(driver: HostDriver) -> None:
    ours, theirs = socket.socketpair()
    program = "from tests.evaluate.worker.cuda.test_runner_protocol import serve; serve({})"
    with (
        theirs,
        subprocess.Popen(
            [sys.executable, "-c", program.format(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
        ) as process,
    ):
        client = RunnerClient(ours)
        theirs.close()
        harness = HostHarness()
        calls = calls_on(harness, 2)
        client.load(compiled("honest"), {"x": 4, "out": 4}, ("out",))
        client.replay(calls[:1], calls[1:], [], cold=False)
        assert host_bytes(calls[1]["out"].address, 64).tolist() == [2] * 64
        client.load(compiled("kills itself"), {"x": 4, "out": 4}, ("out",))
        with pytest.raises(RunnerGone, match=RUNNER_ENDED):
            client.replay(calls[:1], calls[1:], [], cold=False)
        with pytest.raises(RunnerGone, match=RUNNER_ENDED):
            client.unload()
        client.close()
    assert process.returncode == -signal.SIGKILL


def serve(descriptor: int) -> None:
    """Serves as a runner, for a test that kills it."""
    install(pytest.MonkeyPatch())

    def kills_itself(_: dict[str, int], __: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    HostReplayer.behaviours |= {"honest": double, "kills itself": kills_itself}
    runner_loop.serve(socket.socket(fileno=descriptor), 0)


def test_a_context_that_no_longer_works_is_broken_whatever_the_error_says(
    client: RunnerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise cupy.cuda.runtime.CUDARuntimeError(1)

    HostReplayer.behaviours["fails"] = fails
    monkeypatch.setattr(runner_loop.cupy.cuda.runtime, "memGetInfo", fails)
    calls = calls_on(HostHarness(), 2)
    client.load(compiled("fails"), {"x": 4, "out": 4}, ("out",))
    with pytest.raises(Crashed, match="cudaErrorInvalidValue"):
        client.replay(calls[:1], calls[1:], [], cold=False)


def test_a_runner_that_ends_before_it_is_ready_is_gone() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    client = RunnerClient(ours)
    with pytest.raises(RunnerGone, match=RUNNER_ENDED):
        client.wait()
    client.close()
