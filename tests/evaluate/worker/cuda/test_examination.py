"""An examination from the pool to its findings, over shared memory files.

Grader and runner are the real ones but for kernels and graphs: Python functions stand for
candidates, numpy for our own kernels (host_device.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from evoengine.candidate.binding import CasePlan, ScratchBuffer
from evoengine.evaluate.worker.arena import GUARD, POISON
from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Cheated
from evoengine.evaluate.worker.cuda import examination as examination_module
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS
from evoengine.evaluate.worker.cuda.dealing import Dealer, drawn
from evoengine.evaluate.worker.cuda.examination import Examination, Examined
from evoengine.evaluate.worker.cuda.harness.runner_messages import Replayed
from evoengine.evaluate.worker.cuda.harness.virtual_memory import PAGE_BYTES
from evoengine.evaluate.worker.cuda.input_pool import InputPool
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.runner_client import RunnerClient
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.protocols import CompiledCase
from evoengine.records import InputSetCheck
from tests.evaluate.worker.cuda.host_device import (
    Behaviour,
    HostDriver,
    HostHarness,
    HostReplayer,
    connected_runner,
    host_bytes,
    install,
)
from tests.evaluate.worker.shrunken import CPU
from tests.small import small_task

N, C = 64, 96
BYTES = 4 * N * C
CALLS = 6  # of the replays here, the untimed ones among them


def at(address: int) -> torch.Tensor:
    """The float32 values of one buffer of the task."""
    return host_bytes(address, BYTES).view(torch.float32)


def honest(call: dict[str, int], _: int) -> None:
    torch.mul(at(call["x"]), 2, out=at(call["out"]))


@dataclass
class Scene:
    """A grader with its pool, and a runner at the other end of a socket."""

    driver: HostDriver
    harness: HostHarness
    client: RunnerClient
    pool: InputPool

    def examine(self, behaviour: Behaviour, scratch: int = 0) -> Examination:
        HostReplayer.behaviours["candidate"] = behaviour
        buffers = {"room": ScratchBuffer(dtype="uint8", shape=(scratch,))} if scratch else {}
        plan = CasePlan(case="plain", hidden=False, macros={}, scratch=buffers, launches=())
        compiled = CompiledCase(plan=plan, code_path="candidate", functions={})
        return Examination(
            self.harness, PairClient(self.client, None), self.pool._task, compiled, "fp32"
        )

    def replay(self, behaviour: Behaviour, cold: bool = False, scratch: int = 0) -> Examined:
        examination = self.examine(behaviour, scratch)
        return examination.replay(drawn(self.pool.sets("plain"), CALLS), cold)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    driver = install(monkeypatch)
    (tmp_path / "scale_rows.py").write_text("def forward(x):\n    return x * 2\n")
    task = small_task()
    expected = ExpectedOutputs(task, TaskFunctions(task, tmp_path / "t.yaml"), CPU)
    with connected_runner(monkeypatch) as client:
        yield Scene(driver, HostHarness(), client, InputPool(task, expected, lambda: None))


@pytest.mark.parametrize("cold", [False, True])
def test_an_honest_candidate_is_right_on_every_set_that_it_was_given(
    scene: Scene, cold: bool
) -> None:
    examination = scene.examine(honest)
    sets = scene.pool.sets("plain")
    found = examination.replay(sets[:CALLS], cold)
    assert found.wrong == ()
    assert found.times_us == (100.0,) * (CALLS - WARM_UP_CALLS if cold else 1)
    assert [check.seed for check in examination.checks] == list(range(CALLS))
    assert all(check.ok for check in examination.checks)
    examination.replay(sets[4 : 4 + CALLS], cold)
    assert [check.seed for check in examination.checks] == list(range(4 + CALLS))


@pytest.mark.parametrize("lazy", range(CALLS))
def test_one_idle_call_is_found_wherever_it_stands_in_the_replay(scene: Scene, lazy: int) -> None:
    def idles(call: dict[str, int], number: int) -> None:
        if number != lazy:
            honest(call, number)

    (wrong,) = scene.replay(idles).wrong
    assert wrong.nan_count == N * C and not wrong.ok


def test_a_deferred_output_is_wrong_even_if_the_next_call_writes_it(scene: Scene) -> None:
    left: list[dict[str, int]] = []

    def defers(call: dict[str, int], number: int) -> None:
        for earlier in left:
            honest(earlier, number)
        left[:] = [call]

    # all but the last: their outputs are there when the replay ends, the last one's is not
    assert len(scene.replay(defers).wrong) == 1


def test_an_output_copied_from_an_earlier_call_is_wrong(scene: Scene) -> None:
    kept: list[torch.Tensor] = []

    def copies(call: dict[str, int], number: int) -> None:
        if not kept:
            honest(call, number)
            kept.append(at(call["out"]).clone())
        at(call["out"]).copy_(kept[0])

    assert len(scene.replay(copies).wrong) == CALLS - 1


def test_a_wrong_output_is_explained_with_its_place_and_the_number_of_its_set(
    scene: Scene,
) -> None:
    def spoils(call: dict[str, int], number: int) -> None:
        honest(call, number)
        if number == 2:
            at(call["out"])[5 * C + 7] += 3.0

    sets = scene.pool.sets("plain")
    (wrong,) = scene.examine(spoils).replay(sets[:CALLS], cold=False).wrong
    assert (wrong.seed, wrong.distribution) == (2, sets[2].distribution)
    assert (wrong.worst_output, wrong.worst_index) == ("out", (5, 7))
    assert wrong.max_abs == pytest.approx(3.0, rel=1e-5)


def test_of_a_replay_that_is_wrong_everywhere_only_the_wrongest_call_is_compared_once_more(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []
    compare = examination_module.compare_outputs

    def counted(*arguments: Any) -> InputSetCheck:
        compared.append(arguments[-1])
        return compare(*arguments)

    monkeypatch.setattr(examination_module, "compare_outputs", counted)

    def spoils(call: dict[str, int], number: int) -> None:
        honest(call, number)
        at(call["out"])[5 * C + number] += 3e3 if number == 2 else 3.0

    wrong = scene.examine(spoils).replay(scene.pool.sets("plain")[:CALLS], cold=False).wrong
    assert len(wrong) == CALLS and compared == [2]
    assert [check.worst_index for check in wrong if check.worst_index] == [(5, 2)]


def test_no_call_gives_wrong_answers_and_stays_among_the_right_ones(scene: Scene) -> None:
    examination = scene.examine(lambda call, number: honest(call, number) if number else None)
    sets = scene.pool.sets("plain")
    assert len(examination.replay(sets[:CALLS], cold=False).wrong) == 1
    assert [check.seed for check in examination.checks] == list(range(1, CALLS))


def test_an_input_that_any_call_changes_is_a_cheat_by_name(scene: Scene) -> None:
    def overwrites(call: dict[str, int], number: int) -> None:
        honest(call, number)
        if number == 3:
            at(call["x"])[-1] += 1.0

    with pytest.raises(Cheated, match=r"^input 'x' was overwritten$"):
        scene.replay(overwrites)


@pytest.mark.parametrize(
    ("buffer", "beyond"), [("x", -1), ("out", -1), ("out", BYTES), ("x", -4096)]
)
def test_one_byte_beside_a_buffer_is_a_cheat(scene: Scene, buffer: str, beyond: int) -> None:
    def strays(call: dict[str, int], number: int) -> None:
        honest(call, number)
        host_bytes(call[buffer] + beyond, 1)[0] ^= 1

    with pytest.raises(Cheated, match=r"^memory outside the buffers was written$"):
        scene.replay(strays)


def test_scratch_is_poisoned_before_every_replay_and_may_be_written(scene: Scene) -> None:
    seen = []

    def scribbles(call: dict[str, int], number: int) -> None:
        honest(call, number)
        room = host_bytes(call["room"], 1000)
        seen.append(bool((room == POISON).all()))
        room.fill_(0)

    examination = scene.examine(scribbles, scratch=1000)
    for _ in range(3):
        assert examination.replay(drawn(scene.pool.sets("plain"), CALLS), False).wrong == ()
    assert seen == [True] * 3 * CALLS


def test_outputs_hold_poison_and_slots_guards_when_a_replay_begins(scene: Scene) -> None:
    sets = scene.pool.sets("plain")
    layout = {"x": (torch.float32, (N, C)), "out": (torch.float32, (N, C))}
    dealer = Dealer(scene.harness, scene.harness.slots, layout)
    for call in dealer.deal(sets[:4], unmasked=4):
        x, out = call.places["x"], call.places["out"]
        assert torch.equal(at(x.address).view(N, C), call.given.inputs["x"])
        assert bool((host_bytes(out.address, BYTES) == POISON).all())
        for place in (x, out):
            slot = host_bytes(place.slot.address, place.slot.size).clone()
            slot[place.offset : place.offset + BYTES] = GUARD
            assert bool((slot == GUARD).all())
    assert dealer.slot_bytes == 2 * PAGE_BYTES and dealer.named(3) == "out"


def test_a_warm_up_that_knows_every_slot_finds_nothing_of_the_timed_calls(scene: Scene) -> None:
    """Neither their inputs, nor inputs and outputs of earlier replays in slots that are idle."""
    slots = set[int]()  # the first bytes of all that a call ever had
    found, inputs = set[bytes](), set[bytes]()  # in the warm-up, and of the timed calls

    def knows_all(call: dict[str, int], number: int) -> None:
        own = {address - address % PAGE_BYTES for address in call.values()}
        if number == 0:
            for slot in slots - own:
                found.update(pieces(slot, PAGE_BYTES))
        else:
            inputs.update(pieces(call["x"], BYTES))
        slots.update(own)
        honest(call, number)

    examination = scene.examine(knows_all)
    for cold in (False, True, False, True):
        inputs.clear()
        found.clear()
        known = len(slots)
        count = 3 if cold else CALLS
        assert examination.replay(drawn(scene.pool.sets("plain"), count), cold).wrong == ()
        assert len(inputs) > count and bool(found) == bool(known)
        assert not (inputs - {bytes(64)}) & found, "distributions have slices of zeros"
    assert scene.harness.slots.idle, "a quarter more slots than are needed"
    for slot in scene.harness.slots.idle:
        assert bool((host_bytes(slot.address, slot.size) == GUARD).all())


def pieces(address: int, size: int) -> set[bytes]:
    """What lies there, in pieces of 64 bytes, to which buffers are aligned."""
    value = host_bytes(address, size).numpy().tobytes()
    return {value[at : at + 64] for at in range(0, size, 64)}


def test_what_a_kernel_is_given_lies_elsewhere_in_every_replay(scene: Scene) -> None:
    seen: list[tuple[int, ...]] = []

    def watches(call: dict[str, int], number: int) -> None:
        honest(call, number)
        seen.append((call["x"], call["out"], call["x"] - call["out"]))

    examination = scene.examine(watches)
    for _ in range(10):
        examination.replay(drawn(scene.pool.sets("plain"), CALLS), False)
    for addresses in zip(*seen, strict=True):
        assert len(set(addresses)) > 0.9 * 10 * CALLS


def test_the_sets_of_a_replay_are_all_different(scene: Scene) -> None:
    contents: list[bytes] = []

    def watches(call: dict[str, int], number: int) -> None:
        honest(call, number)
        contents.append(numpy.asarray(at(call["x"])).tobytes())

    scene.replay(watches)
    assert len(set(contents)) == CALLS


def test_two_clocks_that_disagree_give_no_time(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for event_us, stamp_us, agree in (
        (100.0, 119.0, True),  # the stamps lie outside of the events
        (100.0, 140.0, False),
        (140.0, 100.0, False),
        (1000.0, 1100.0, True),
        (1000.0, 1200.0, False),
        (0.0, 25.0, False),
    ):
        replayed = Replayed(event_us=(event_us,), stamp_us=(stamp_us,), host_us=0.0)
        monkeypatch.setattr(HostReplayer, "times", lambda _, found=replayed: found)
        assert scene.replay(honest).times_us == ((event_us,) if agree else ())


def test_a_candidate_whose_buffers_do_not_fit_cannot_be_launched(scene: Scene) -> None:
    scene.driver.memory_bytes = 40 * PAGE_BYTES
    with pytest.raises(CannotLaunch, match="no device memory for its buffers: cuMemCreate"):
        scene.replay(honest, scratch=8 * PAGE_BYTES)
    assert scene.replay(honest).wrong == ()


def test_slots_of_another_candidate_are_dropped_by_the_runner_before_they_are_freed(
    scene: Scene,
) -> None:
    scene.harness.slots._limit = 10 * PAGE_BYTES
    scene.replay(honest, scratch=3 * PAGE_BYTES)
    large = [size for size in scene.driver.mapped.values() if size == 4 * PAGE_BYTES]
    assert len(large) > CALLS
    scene.replay(honest)
    assert 4 * PAGE_BYTES not in scene.driver.mapped.values()


def test_closing_reports_what_the_candidate_left_in_use(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    examination = scene.examine(honest)
    examination.replay(drawn(scene.pool.sets("plain"), CALLS), False)
    taken = scene.harness.own_bytes()
    free = iter([8 * 1024**3 - taken - 4096])
    monkeypatch.setattr(HostReplayer, "unload", lambda _: next(free))
    assert examination.close() == 4096


def test_the_free_memory_after_one_case_is_that_before_the_next(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    unload = HostReplayer.unload

    def counted(replayer: HostReplayer) -> int:
        asked.append(unload(replayer))
        return asked[-1]

    monkeypatch.setattr(HostReplayer, "unload", counted)
    scene.examine(honest).close()
    assert len(asked) == 2
    examination = scene.examine(honest)
    assert len(asked) == 2 and examination.close() == 0


def test_an_input_that_is_changed_in_place_is_an_output_and_no_stray_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = install(monkeypatch)
    (tmp_path / "scale_rows.py").write_text("def forward(x):\n    return x * 2\n")
    given = small_task()
    output = given.outputs["out"].model_copy(update={"inout": True})
    task = given.model_copy(update={"outputs": {"x": output}})
    expected = ExpectedOutputs(task, TaskFunctions(task, tmp_path / "t.yaml"), CPU)

    def doubles(call: dict[str, int], _: int) -> None:
        at(call["x"]).mul_(2)

    def keeps(_: dict[str, int], __: int) -> None:
        pass

    with connected_runner(monkeypatch) as client:
        scene = Scene(driver, HostHarness(), client, InputPool(task, expected, lambda: None))
        assert scene.replay(doubles).wrong == ()
        assert scene.replay(doubles, cold=True).wrong == ()
        assert len(scene.replay(keeps).wrong) == CALLS
