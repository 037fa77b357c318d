"""The grader's side of two runners, at the other ends of real sockets."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from evoengine.candidate.binding import CasePlan, ScratchBuffer
from evoengine.evaluate.device.worker_protocol import RUNNER_ENDED
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.examination import Examination
from evoengine.evaluate.worker.cuda.harness.runner_messages import MAX_DESCRIPTORS, Fault, Served
from evoengine.evaluate.worker.cuda.harness.virtual_memory import PAGE_BYTES, AddressRange
from evoengine.evaluate.worker.cuda.input_pool import InputPool
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.runner import runner_loop
from evoengine.evaluate.worker.cuda.runner_client import RunnerClient, RunnerGone
from evoengine.evaluate.worker.cuda.slots import SlotPool
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase
from tests.evaluate.worker.cuda.host_device import (
    HostHarness,
    HostReplayer,
    connected_pair,
    host_bytes,
    install,
)
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

ELEMENTS = {"plain": 64 * 96, "odd": 7 * 33}


def compiled(case: str, scratch: int = 0) -> CompiledCase:
    buffers = {"room": ScratchBuffer(dtype="uint8", shape=(scratch,))} if scratch else {}
    plan = CasePlan(case=case, hidden=case == "odd", macros={}, scratch=buffers, launches=())
    return CompiledCase(plan=plan, code_path=case, functions={})


class Connections:
    """Where a grader gets runners from, and what the parent has sent to it."""

    def __init__(self) -> None:
        self.parent, self.grader = socket.socketpair()
        self._threads: list[threading.Thread] = []

    def send(self, *serve: bool) -> None:
        """Sends the connections of as many runners; one that does not serve has ended."""
        pairs = [socket.socketpair() for _ in serve]
        socket.send_fds(self.parent, [b"r"], [ours.fileno() for ours, _ in pairs])
        for (ours, theirs), serves in zip(pairs, serve, strict=True):
            ours.close()
            if not serves:
                theirs.close()
                continue
            thread = threading.Thread(target=_serve, args=[theirs], daemon=True)
            thread.start()
            self._threads.append(thread)

    def close(self) -> None:
        self.parent.close()
        self.grader.close()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()


def _serve(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        runner_loop.serve(connection, 0)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Iterator[Connections]:
    install(monkeypatch)
    connections = Connections()
    yield connections
    connections.close()


def test_hidden_cases_run_in_the_second_runner_and_all_others_in_the_first(
    connections: Connections,
) -> None:
    connections.send(True, True)
    pair = PairClient.received(connections.grader)
    assert pair.runner_of(compiled("plain")) is pair.shown
    assert pair.runner_of(compiled("odd")) is pair.hidden is not pair.shown
    pair.close()


def test_a_hidden_case_without_a_runner_for_it_never_runs_in_the_other_one(
    connections: Connections,
) -> None:
    connections.send(True)
    pair = PairClient.received(connections.grader)
    with pytest.raises(AssertionError):
        pair.runner_of(compiled("odd"))
    pair.close()


@pytest.mark.parametrize("serve", [(False, True), (True, False), (False, False)])
def test_a_pair_of_which_one_does_not_start_is_gone(
    connections: Connections, serve: tuple[bool, bool]
) -> None:
    connections.send(*serve)
    pair = PairClient.received(connections.grader)
    with pytest.raises(RunnerGone, match=f"^{RUNNER_ENDED}$"):
        pair.wait()
    pair.close()


def test_slots_are_mapped_ahead_by_the_runner_of_their_cases_while_it_stands_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    addresses = AddressRange(0)
    shown, hidden = (
        SlotPool(0, addresses, limit_bytes=0).reserve([PAGE_BYTES] * count)
        for count in (MAX_DESCRIPTORS + 20, 3)
    )
    with connected_pair(monkeypatch) as pair:
        assert pair.hidden is not None
        pair.wait()
        pair.map_ahead(shown, hidden)
        assert pair.shown._known == {slot.number for slot in shown[:MAX_DESCRIPTORS]}
        pair.wait()
        pair.map_ahead(shown, hidden)
        pair.wait()
        asked = list[object]()
        monkeypatch.setattr(pair.shown, "_begin_to_map", asked.append)
        pair.shown.map(shown)
        assert not asked and len(pair.shown._known) == len(shown)
        assert pair.hidden._known == {slot.number for slot in hidden}
        assert pair.is_new, "it has loaded no candidate"


def test_nothing_is_mapped_ahead_by_a_runner_that_starts_and_nobody_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    slots = SlotPool(0, AddressRange(0), limit_bytes=0).reserve([PAGE_BYTES])
    ours, theirs = socket.socketpair()
    client = RunnerClient(ours)
    client.map_ahead(slots)
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)
    theirs.sendall(Served().model_dump_json().encode() + b"\n")
    client.map_ahead(slots)
    client.map_ahead(slots)  # it maps: no second message
    line, descriptors, _, _ = socket.recv_fds(theirs, 1 << 16, MAX_DESCRIPTORS)
    assert line.count(b"map_slots") == 1 and len(descriptors) == len(slots)
    for descriptor in descriptors:
        os.close(descriptor)
    theirs.close()
    client.close()


@pytest.mark.parametrize("is_started", [False, True])
def test_a_runner_that_ends_while_it_stands_by_is_gone_for_who_uses_it(
    monkeypatch: pytest.MonkeyPatch, is_started: bool
) -> None:
    install(monkeypatch)
    slots = SlotPool(0, AddressRange(0), limit_bytes=0).reserve([PAGE_BYTES])
    ours, theirs = socket.socketpair()
    client = RunnerClient(ours)
    if is_started:
        theirs.sendall(Served().model_dump_json().encode() + b"\n")
        client.wait()
    theirs.close()
    client.map_ahead(slots)
    client.map_ahead(slots)
    with pytest.raises(RunnerGone, match=f"^{RUNNER_ENDED}$"):
        client.wait()
    client.close()


def test_a_runner_that_cannot_map_ahead_is_gone_for_who_uses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch)
    slots = SlotPool(0, AddressRange(0), limit_bytes=0).reserve([PAGE_BYTES] * 2)
    ours, theirs = socket.socketpair()
    client = RunnerClient(ours)
    theirs.sendall(Served().model_dump_json().encode() + b"\n")
    client.map_ahead(slots)
    theirs.sendall(Fault(reason="out of memory", broken=True).model_dump_json().encode() + b"\n")
    client.map_ahead(slots)
    with pytest.raises(RunnerGone, match=f"^{RUNNER_ENDED}$"):
        client.wait()
    theirs.close()
    client.close()


@pytest.mark.parametrize(("case", "other"), [("plain", "odd"), ("odd", "plain")])
def test_a_slot_is_mapped_and_dropped_in_one_runner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, other: str
) -> None:
    install(monkeypatch)
    (tmp_path / "scale_rows.py").write_text("def forward(x):\n    return x * 2\n")
    task = small_task(hidden_cases={"odd": {"N": 7, "C": 33, "flip": True}})
    expected = ExpectedOutputs(task, TaskFunctions(task, tmp_path / "t.yaml"), CPU)
    pool, harness = InputPool(task, expected, lambda: None), HostHarness(slots_bytes=PAGE_BYTES)

    def replay(pair: PairClient, one: CompiledCase) -> set[int]:
        """The sizes of the slots that the runner of `one` knows then."""
        name, runner = one.plan.case, pair.runner_of(one)

        def doubles(call: dict[str, int], _: int) -> None:
            x, out = (host_bytes(call[key], 4 * ELEMENTS[name]) for key in ("x", "out"))
            torch.mul(x.view(torch.float32), 2, out=out.view(torch.float32))

        HostReplayer.behaviours[name] = doubles
        examination = Examination(harness, pair, task, one, "fp32")
        assert not examination.replay(drawn(pool.sets(name), 4), cold=False).wrong
        slots = harness.slots_of(one.plan.hidden)._slots.values()
        return {slot.size for some in slots for slot in some if slot.number in runner._known}

    with connected_pair(monkeypatch) as pair:
        assert replay(pair, compiled(other)) == {PAGE_BYTES}
        others = set(pair.runner_of(compiled(other))._known)
        assert replay(pair, compiled(case, scratch=PAGE_BYTES)) == {PAGE_BYTES, 2 * PAGE_BYTES}
        assert replay(pair, compiled(case)) == {PAGE_BYTES}
        assert others and not pair.runner_of(compiled(other))._known, "its slots gave way"
