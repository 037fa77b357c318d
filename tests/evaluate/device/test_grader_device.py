"""Which processes a GraderDevice keeps, and which it replaces, with a scripted module."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evoengine.candidate.binding import CasePlan
from evoengine.errors import TaskError, WorkerError
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.grader_device import GraderDevice
from evoengine.protocols import CompiledCase, Job, Report
from evoengine.records import Status
from evoengine.task.load import load_task
from tests.evaluate.device.test_contract import SCRIPTED, TASK

PLAN = CasePlan(case="small", hidden=False, macros={}, scratch={}, launches=())


def job(behaviour: str) -> Job:
    return Job(cases=(CompiledCase(plan=PLAN, code_path=behaviour, functions={}),), tier="fp32")


class Stage:
    """A device on which scenes are played."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "scale.yaml"
        self.path.write_text(TASK)
        (folder / "scale.py").write_text("def forward(x):\n    return x * 2\n")

    def play(
        self, scene: Callable[[GraderDevice], Awaitable[Any]], start: str = "", *arguments: str
    ) -> Any:
        """Runs `scene` with a started device, and closes it; `start`: the task's path."""

        async def run() -> Any:
            device = GraderDevice(ForkServer(SCRIPTED, arguments))
            try:
                await device.start(load_task(self.path), start or str(self.path))
                return await scene(device)
            finally:
                await device.close()

        return asyncio.run(run())


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def judged(device: GraderDevice, behaviour: str, verify: bool = False) -> Report:
    return await device.run(job(behaviour), lambda _: None, verify)


def pids(device: GraderDevice) -> tuple[int | None, ...]:
    """Grader, runner and spare runner; None for a process that is not there."""
    return tuple(one and one.pid for one in (device._grader, device._runner, device._spare))


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        ("endless", Status.timeout),
        ("illegal access", Status.crash),
        ("kills its worker", Status.crash),
        ("is killed", Status.crash),
    ],
)
def test_a_candidate_that_breaks_its_runner_costs_the_runner_and_not_the_grader(
    stage: Stage, behaviour: str, status: Status
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "correct")
        before = pids(device)
        broken = await judged(device, behaviour)
        between = pids(device)
        good = await judged(device, "correct")
        return before, broken.status, between, good.status, pids(device)

    before, broken, between, good, after = stage.play(scene)
    assert (broken, good) == (status, Status.correct)
    assert before[0] == between[0] == after[0]
    assert between[1] is None and after[1] != before[1]
    assert after[1] == (before[2] if behaviour != "is killed" else between[2])


@pytest.mark.parametrize("behaviour", ["correct", "wrong", "prints and is wrong"])
def test_a_healthy_runner_judges_the_next_candidate(stage: Stage, behaviour: str) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, behaviour)
        before = pids(device)
        await judged(device, "correct")
        return before, pids(device)

    before, after = stage.play(scene)
    assert before == after and None not in before


def test_a_verification_takes_the_spare_runner_and_the_same_grader(stage: Stage) -> None:
    said: list[str] = []

    async def scene(device: GraderDevice) -> Any:
        await device.run(job("correct"), said.append)
        before = pids(device)
        await device.run(job("correct"), said.append, verify=True)
        return before, pids(device)

    before, after = stage.play(scene)
    assert after[:2] == (before[0], before[2]) and after[2] not in (None, *before)
    assert said.count("changing to a new process") == 1


def test_a_verification_by_a_runner_that_has_run_no_candidate_changes_nothing(
    stage: Stage,
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "endless")
        before = pids(device)
        await judged(device, "correct", verify=True)
        return before, pids(device)

    before, after = stage.play(scene)
    assert after[0] == before[0] and after[1] == before[2]


def test_baselines_need_no_runner(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> Any:
        report = await device.run(Job(cases=(), tier=""), lambda _: None)
        return report.status, pids(device)

    status, (grader, runner, spare) = stage.play(scene)
    assert status is Status.correct and grader is not None
    assert (runner, spare) == (None, None)


@pytest.mark.parametrize("which", [1, 2], ids=["runner", "spare"])
def test_a_runner_that_is_killed_while_nothing_runs_is_replaced(stage: Stage, which: int) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "correct")
        before = pids(device)
        os.kill(before[which] or 0, signal.SIGKILL)
        verdict = await judged(device, "correct", verify=which == 2)
        return before, verdict.status, pids(device)

    before, status, after = stage.play(scene)
    assert status is Status.correct
    assert before[0] == after[0] and before[which] not in after


def test_a_cancelled_job_costs_grader_and_runner_and_the_spare_serves_a_new_grader(
    stage: Stage,
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "correct")
        before = pids(device)
        under_way = asyncio.create_task(judged(device, "endless"))
        await asyncio.sleep(0.3)
        under_way.cancel()
        await asyncio.wait([under_way])
        between = pids(device)
        verdict = await judged(device, "correct")
        return before, between, verdict.status, pids(device)

    before, between, status, after = stage.play(scene)
    assert between == (None, None, before[2])
    assert status is Status.correct
    assert after[0] not in before and after[1] == before[2]


def test_a_grader_that_dies_is_our_fault_and_the_next_job_has_a_new_one(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "correct")
        before = pids(device)
        with pytest.raises(WorkerError, match="the grader died: worker ended with signal SIGSEGV"):
            await judged(device, "ours kills its worker")
        verdict = await judged(device, "correct")
        return before, verdict.status, pids(device)

    before, status, after = stage.play(scene)
    assert status is Status.correct and after[0] != before[0]


def test_a_runner_whose_device_starts_late_is_waited_for(stage: Stage) -> None:
    late = str(stage.path).replace("scale.yaml", "late.yaml")
    verdict = stage.play(lambda device: judged(device, "correct"), late, "late")
    assert verdict.status is Status.correct


def test_a_runner_that_cannot_start_is_no_fault_of_the_candidate(stage: Stage) -> None:
    late = str(stage.path).replace("scale.yaml", "late.yaml")
    with pytest.raises(
        WorkerError, match=r"^a runner did not start: exit code 1: (.*\n)*.*no memory on the device"
    ):
        stage.play(lambda device: judged(device, "correct"), late, "unable")


def test_a_task_whose_reference_raises_leaves_no_process(stage: Stage) -> None:
    async def scene() -> tuple[int | None, ...]:
        device = GraderDevice(ForkServer(SCRIPTED))
        try:
            with pytest.raises(TaskError, match="reference raised ValueError"):
                await device.start(load_task(stage.path), "raising.yaml")
            return pids(device)
        finally:
            await device.close()

    assert asyncio.run(scene()) == (None, None, None)


def test_no_grader_and_no_runner_outlives_a_parent_that_is_killed(stage: Stage) -> None:
    program = (
        "import asyncio, time\n"
        "from pathlib import Path\n"
        "from tests.evaluate.device.test_grader_device import Stage, judged, pids\n"
        "async def scene(device):\n"
        "    await judged(device, 'correct')\n"
        "    print(*pids(device), flush=True)\n"
        "    time.sleep(60)\n"
        f"Stage(Path({str(stage.path.parent)!r})).play(scene)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        started = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(started) == 3
    for _ in range(200):
        if not any(alive(pid) for pid in started):
            break
        time.sleep(0.02)
    assert not [pid for pid in started if alive(pid)]


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
