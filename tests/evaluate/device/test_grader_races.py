"""Races on a GraderDevice: which processes run them, are kept for the next one, or are replaced."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evoengine.errors import WorkerError
from evoengine.evaluate.device.grader_device import GraderDevice
from evoengine.evaluate.device.own_runners import MOST_KEPT
from evoengine.evaluate.device.runner_pair import RunnerPair
from evoengine.evaluate.device.worker_protocol import HOLDER, NEWCOMER, RUNNER_ENDED
from evoengine.protocols import Job, RaceReport
from evoengine.records import Status
from tests.evaluate.device.test_grader_device import Stage, job, judged, pids
from tests.processes import alive, still_alive

NOTES = "notes its process"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def racer(candidate: str, behaviour: str = NOTES) -> Job:
    """A candidate of this digest with the shown case alone, as the objective has it."""
    return job(behaviour).model_copy(
        update={"cases": job(behaviour).cases[:1], "candidate": candidate}
    )


async def raced(
    device: GraderDevice, newcomer: Job, holder: Job, said: list[str] | None = None
) -> RaceReport:
    return await device.race(newcomer, holder, (said if said is not None else []).append)


async def verified(device: GraderDevice, candidate: str) -> Any:
    return await device.run(racer(candidate), lambda _: None, verify=True)


def noted(stage: Stage) -> list[int]:
    """The processes that candidates noted, in the order in which they ran."""
    return [int(pid) for pid in Path(f"{stage.path}.processes").read_text().split()]


def kept(device: GraderDevice) -> dict[str, int | None]:
    """The processes for shown cases that are kept, by candidate; the one used longest ago first."""
    return {name: pair.pids[0] for name, pair in device._own._pairs.items()}


def all_processes(device: GraderDevice) -> list[int]:
    """All that the device has started and not ended."""
    grader, pair, spare = pids(device)
    own = [pid for one in device._own._pairs.values() for pid in one.pids]
    return [pid for pid in (grader, *(pair or ()), *(spare or ()), *own) if pid]


def children_of(device: GraderDevice) -> set[int]:
    """The living children of the fork server: every grader and every runner."""
    process = device._fork_server._process
    assert process is not None
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    return {int(pid) for pid in path.read_text().split() if alive(int(pid))}


def has_started(device: GraderDevice, file: Path) -> bool:
    """Whether both runners that stand by have started before `file` appeared."""
    return all(Path(f"{file}.{pid}").exists() for pid in pids(device)[2])


async def no_more_ends(device: GraderDevice) -> None:
    """Waits for the ends of pairs that the device does not wait for."""
    await asyncio.gather(*device._ending)


async def until(holds: Callable[[], bool]) -> None:
    """Waits until something holds, for some seconds."""
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never held")


def test_each_side_of_a_race_runs_where_no_other_candidate_ran(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> RaceReport:
        await judged(device, NOTES)
        await judged(device, NOTES)
        return await raced(device, racer("a"), racer("b"))

    report = stage.play(scene)
    assert report.status is Status.correct and len(report.timings) == 1
    first, again, newcomer, holder = noted(stage)
    assert first == again and len({first, newcomer, holder}) == 3


def test_the_runners_of_a_verification_race_its_candidate_and_all_its_later_races(
    stage: Stage,
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, NOTES)
        shared = pids(device)[1]
        await verified(device, "a")
        await raced(device, racer("a"), racer("b"))
        await raced(device, racer("c"), racer("a"))
        await raced(device, racer("b"), racer("c"))
        await judged(device, NOTES)
        return shared, pids(device)[1]

    before, after = stage.play(scene)
    first, a, *races, last = noted(stage)
    b, c = races[1], races[2]
    assert races == [a, b, c, a, b, c]
    assert len({first, a, b, c}) == 4
    assert before == after and first == last, "first verdicts have their runners still"


def test_the_runners_of_a_verification_start_while_it_waits_for_its_turn(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> Any:
        endless = job("endless")
        before = asyncio.create_task(device.run(endless, lambda _: None, verify=True))
        await until(lambda: device._pair is not None)
        waiting = asyncio.create_task(verified(device, "a"))
        await until(lambda: bool(device._spares.pairs))
        started, is_waiting = pids(device)[2], not before.done()
        await asyncio.gather(before, waiting)
        return started[0], is_waiting, kept(device)

    started, is_waiting, own = stage.play(scene)
    assert is_waiting and own == {"a": started}


def test_a_candidate_that_fails_its_verification_is_not_kept(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> Any:
        before = children_of(device)
        wrong = racer("a", "wrong")
        report = await device.run(wrong, lambda _: None, verify=True)
        return report.status, kept(device), children_of(device) - before, pids(device)

    status, own, started, (_, _, spare) = stage.play(scene)
    assert status is Status.wrong_result and own == {}
    assert started == set(spare), "the spare ones alone live"


def test_a_candidate_without_a_digest_races_in_new_runners_each_time(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> Any:
        for _ in range(2):
            await raced(device, racer(""), racer(""))
        return kept(device)

    assert stage.play(scene) == {}
    assert len(set(noted(stage))) == 4


def test_a_candidate_that_races_itself_has_two_pairs_and_keeps_one(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> Any:
        await raced(device, racer("a"), racer("a"))
        await no_more_ends(device)
        return kept(device), set(all_processes(device)) == children_of(device)

    own, all_known = stage.play(scene)
    first, second = noted(stage)
    assert first != second and own == {"a": second} and all_known


def test_so_many_pairs_are_kept_and_the_one_used_longest_ago_ends_first(stage: Stage) -> None:
    names = [str(number) for number in range(MOST_KEPT + 2)]

    async def scene(device: GraderDevice) -> Any:
        for name in names[:MOST_KEPT]:
            await verified(device, name)
        full = kept(device)
        await raced(device, racer(names[0]), racer(names[1]))
        for name in names[MOST_KEPT:]:
            await verified(device, name)
        await no_more_ends(device)
        return full, kept(device), children_of(device) == set(all_processes(device))

    full, after, none_is_lost = stage.play(scene)
    assert list(full) == names[:MOST_KEPT]
    assert list(after) == [*names[4:MOST_KEPT], *names[:2], *names[MOST_KEPT:]]
    assert after["0"] == full["0"] and not still_alive([full["2"]])
    assert none_is_lost


@pytest.mark.parametrize("side", [NEWCOMER, HOLDER])
@pytest.mark.parametrize(
    ("behaviour", "status", "says"),
    [
        ("wrong", Status.wrong_result, "max abs error 1"),
        ("illegal access", Status.crash, "illegal memory access"),
        ("kills its worker", Status.crash, f"{RUNNER_ENDED} (checking small): signal SIGSEGV"),
        ("endless", Status.timeout, "racing the {side} on small took longer than 1.5 s"),
    ],
)
def test_a_side_that_fails_is_named_and_the_next_race_finds_a_healthy_device(
    stage: Stage, behaviour: str, status: Status, says: str, side: str
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await verified(device, "good")
        grader = pids(device)[0]
        bad, good = racer("bad", behaviour), racer("good")
        jobs = (bad, good) if side == NEWCOMER else (good, bad)
        failed = await raced(device, *jobs)
        own, lost = kept(device), children_of(device) - set(all_processes(device))
        after = await raced(device, racer("good"), racer("other"))
        return failed, own, lost, after, grader == pids(device)[0]

    failed, own, lost, after, same_grader = stage.play(scene)
    assert (failed.status, failed.at_fault) == (status, side)
    assert says.format(side=side) in failed.reason
    assert own == {} and lost == set()
    assert after.status is Status.correct and same_grader


def test_a_side_whose_process_crashes_is_raced_again_once_in_new_ones(stage: Stage) -> None:
    said: list[str] = []

    async def scene(device: GraderDevice) -> RaceReport:
        return await raced(device, racer("a"), racer("b", "kills its worker"), said)

    report = stage.play(scene)
    assert (report.status, report.at_fault) == (Status.crash, HOLDER)
    assert said.count("a process of the race ended; racing once more in new ones") == 1
    first, again = noted(stage)
    assert first != again, "the innocent side is in a new one, too"


@pytest.mark.parametrize("which", ["a", "b"])
def test_a_kept_runner_that_is_killed_while_nothing_runs_is_replaced(
    stage: Stage, which: str
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await raced(device, racer("a"), racer("b"))
        before = kept(device)
        killed = before[which]
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        report = await raced(device, racer("a"), racer("b"))
        return report, before, kept(device), children_of(device) - set(all_processes(device))

    report, before, after, lost = stage.play(scene)
    assert report.status is Status.correct
    assert not {*before.values()} & {*after.values()} and lost == set()


def test_a_kill_from_outside_during_a_race_costs_it_once(stage: Stage) -> None:
    report = stage.play(lambda device: raced(device, racer("a", "is killed once"), racer("b")))
    assert report.status is Status.correct


@pytest.mark.parametrize("side", [NEWCOMER, HOLDER])
def test_two_kills_from_outside_are_the_fault_of_neither_side(stage: Stage, side: str) -> None:
    """Otherwise a machine without memory would take a holder's place away."""
    jobs = [racer("a", "is killed"), racer("b")]
    if side == HOLDER:
        jobs.reverse()
    report = stage.play(lambda device: raced(device, *jobs))
    assert (report.status, report.at_fault) == (Status.crash, "")
    assert report.reason.endswith("signal SIGKILL")


def test_the_time_of_a_race_is_that_of_both_sides_and_the_fault_of_neither(stage: Stage) -> None:
    stage.path.write_text(stage.path.read_text().replace("evaluate_s: 20", "evaluate_s: 0.4"))
    report = stage.play(lambda device: raced(device, racer("a"), racer("b", "endless")))
    assert (report.status, report.at_fault) == (Status.timeout, "")
    assert report.reason == "the race took longer than 0.8 s"


@pytest.mark.parametrize("side", [NEWCOMER, HOLDER])
def test_a_cancelled_race_leaves_a_healthy_device_and_no_process(stage: Stage, side: str) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "correct")
        await verified(device, "kept")
        started = children_of(device)
        jobs = [racer("a", "endless"), racer("kept")]
        if side == HOLDER:
            jobs.reverse()
        under_way = asyncio.create_task(raced(device, *jobs))
        await asyncio.sleep(0.5)
        racing = children_of(device)
        under_way.cancel()
        await asyncio.wait([under_way])
        assert under_way.cancelled()
        left = children_of(device)
        assert left == set(all_processes(device)), "only what the device knows lives"
        report = await raced(device, racer("a"), racer("b"))
        return started, racing, left, report

    started, racing, left, report = stage.play(scene)
    assert racing > started - racing and racing - left
    assert left == set(), "the spare ones raced"
    assert report.status is Status.correct


def test_an_end_that_is_cancelled_has_reached_every_pair(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> Any:
        for name in ("a", "b", "c"):
            await verified(device, name)
        pairs = device._own.clear()
        started = [pid for pair in pairs for pid in pair.pids if pid]
        ending = asyncio.create_task(device._end(pairs))
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait([ending])
        await until(lambda: not any(map(alive, started)))
        return len(started)

    assert stage.play(scene) == 6


def fail_from(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From this pair on, none can be forked."""
    spawn, numbers = RunnerPair.spawn, iter(range(100))

    async def fails(pair: RunnerPair) -> None:
        if next(numbers) >= number:
            raise WorkerError("no more processes")
        await spawn(pair)

    monkeypatch.setattr(RunnerPair, "spawn", fails)


def test_a_pair_is_ended_if_the_one_after_it_cannot_be_forked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(device: GraderDevice) -> Any:
        fail_from(1, monkeypatch)  # the holder's
        with pytest.raises(WorkerError, match="no more processes"):
            await raced(device, racer("a"), racer("b"))
        return children_of(device), all_processes(device)

    assert stage.play(scene) == (set(), [])


def test_a_spare_pair_that_cannot_be_forked_costs_no_result(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(device: GraderDevice) -> Any:
        fail_from(2, monkeypatch)
        return (await raced(device, racer("a"), racer("b"))).status, len(kept(device))

    assert stage.play(scene) == (Status.correct, 2)


def test_a_grader_that_dies_in_a_race_is_our_fault_and_the_next_race_has_a_new_one(
    stage: Stage,
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await verified(device, "a")
        with pytest.raises(WorkerError, match="the grader died: worker ended with signal SIGSEGV"):
            await raced(device, racer("a", "ours kills its worker"), racer("b"))
        assert children_of(device) == set(all_processes(device))
        return (await raced(device, racer("a"), racer("b"))).status

    assert stage.play(scene) is Status.correct


def test_a_runner_that_cannot_start_takes_the_memory_of_those_that_are_kept(stage: Stage) -> None:
    late, full = stage.path.with_name("late.yaml"), stage.path.with_name("full")

    async def scene(device: GraderDevice) -> Any:
        await raced(device, racer("a"), racer("b"))  # one more pair stands by
        await until(lambda: has_started(device, full))
        full.touch()
        assert (await raced(device, racer("a"), racer("c"))).status is Status.correct
        await until(lambda: not any(map(alive, pids(device)[2])))
        full.unlink()
        # the one that stands by could not start; those that follow can, once two have ended
        kept_before = kept(device)
        report = await raced(device, racer("a"), racer("d"))
        return report.status, kept_before, kept(device)

    status, before, after = stage.play(scene, str(late), "until", str(full))
    assert status is Status.correct
    assert set(before) == {"a", "b", "c"} and set(after) == {"a", "d"}
    assert before["a"] != after["a"]


def test_runners_of_two_races_in_a_row_that_cannot_start_end_the_run_with_the_reason(
    stage: Stage,
) -> None:
    late, full = stage.path.with_name("late.yaml"), stage.path.with_name("full")

    async def scene(device: GraderDevice) -> None:
        await raced(device, racer("a"), racer("b"))
        await until(lambda: has_started(device, full))
        full.touch()
        await raced(device, racer("a"), racer("c"))
        with pytest.raises(
            WorkerError,
            match=r"(?s)^in two races in a row: its process did not start: exit code 1: .*no memory",
        ):
            await raced(device, racer("a"), racer("d"))
        assert pids(device)[:2] == (None, None) and kept(device) == {}

    stage.play(scene, str(late), "until", str(full))


def test_closing_ends_the_runners_that_are_kept(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> list[int]:
        await verified(device, "a")
        await raced(device, racer("a"), racer("b"))
        started = all_processes(device)
        await device.close()
        return started

    started = stage.play(scene)
    assert len(started) == 7, "a grader, two pairs that are kept, one that stands by"
    assert not still_alive(list(started))


def test_spare_runners_start_when_nobody_waits_or_for_a_verification_that_does(
    stage: Stage,
) -> None:
    async def scene(device: GraderDevice) -> Any:
        standing_by = []

        async def noting(work: Awaitable[Any]) -> None:
            await work
            standing_by.append(len(device._spares.pairs))

        await judged(device, "correct")
        firsts = [judged(device, "correct") for _ in range(2)]
        await asyncio.gather(*map(noting, [verified(device, "a"), *firsts]))
        waiting = [verified(device, name) for name in "bcd"]
        await asyncio.gather(*map(noting, waiting))
        return standing_by

    assert stage.play(scene) == [0, 0, 1, 1, 1, 1]
