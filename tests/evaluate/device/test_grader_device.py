"""Which processes a GraderDevice keeps, and which it replaces, with a scripted module."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evoengine.candidate.binding import CasePlan
from evoengine.errors import TaskError, WorkerError
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.grader_device import GraderDevice
from evoengine.evaluate.device.worker_device import (
    PROFILER_START_S,
    gpu_limits,
    profiling_limits,
)
from evoengine.evaluate.hidden_case import report_without_sizes
from evoengine.protocols import CompiledCase, Job, Purpose, Report
from evoengine.records import Status
from evoengine.task.load import load_task
from evoengine.task.schema import Limits
from tests.evaluate.device.test_contract import SCRIPTED, TASK
from tests.evaluate.kept_fork_server import kept
from tests.processes import alive, still_alive

HIDDEN = "hidden_cases: {odd: {N: 77}}\n"


def job(shown: str, hidden: str = "correct") -> Job:
    """A candidate that behaves so in a shown and in a hidden case."""
    cases = []
    for case, behaviour in (("small", shown), ("odd", hidden)):
        plan = CasePlan(case=case, hidden=case == "odd", macros={}, scratch={}, launches=())
        cases.append(CompiledCase(plan=plan, code_path=behaviour, functions={}))
    return Job(cases=tuple(cases), tier="fp32")


class Stage:
    """A device on which scenes are played."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "scale.yaml"
        self.path.write_text(TASK + HIDDEN)
        (folder / "scale.py").write_text("def forward(x):\n    return x * 2\n")

    def play(
        self, scene: Callable[[GraderDevice], Awaitable[Any]], start: str = "", *arguments: str
    ) -> Any:
        """Runs `scene` with a started device, and closes it; `start`: the task's path."""

        async def run() -> Any:
            server = ForkServer(SCRIPTED, arguments) if arguments else kept().server(SCRIPTED)
            device = GraderDevice(server)
            try:
                await device.start(load_task(self.path), start or str(self.path))
                return await scene(device)
            finally:
                await device.close()

        return kept().run(run())


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def judged(
    device: GraderDevice, shown: str, hidden: str = "correct", verify: bool = False
) -> Report:
    return await device.run(job(shown, hidden), lambda _: None, verify)


@pytest.mark.parametrize("verify", [False, True])
def test_a_device_that_a_diagnosis_broke_costs_its_grader_and_neither_verdict(
    stage: Stage, verify: bool
) -> None:
    async def scene(device: GraderDevice) -> tuple[Report, Report, Report]:
        before = await judged(device, "correct")
        wrong = await judged(device, "its diagnosis breaks the device", verify=verify)
        return before, wrong, await judged(device, "correct")

    before, wrong, after = stage.play(scene)
    assert wrong.status is Status.wrong_result
    assert (before.status, after.status) == (Status.correct, Status.correct)


def pids(device: GraderDevice) -> tuple[Any, Any, Any]:
    """Grader, and the runners for shown and for hidden cases, those at work and the spare ones;
    None for what is not there.
    """
    pair, spare = (one and one.pids for one in (device._pair, (device._spares.pairs or (None,))[0]))
    return device._grader and device._grader.pid, pair, spare


@pytest.mark.parametrize("where", ["shown", "hidden"])
@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        ("endless", Status.timeout),
        ("illegal access", Status.crash),
        ("kills its worker", Status.crash),
        ("is killed", Status.crash),
    ],
)
def test_a_candidate_that_breaks_a_runner_costs_both_runners_and_not_the_grader(
    stage: Stage, behaviour: str, status: Status, where: str
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "correct")
        before = pids(device)
        broken = await judged(device, **{"shown": "correct", where: behaviour})
        between = pids(device)
        good = await judged(device, "correct")
        return before, broken.status, between, good.status, pids(device)

    before, broken, between, good, after = stage.play(scene)
    assert (broken, good) == (status, Status.correct)
    assert before[0] == between[0] == after[0]
    assert between[1] is None and not {*before[1]} & {*after[1]}
    # what crashed was judged once more, in the spare ones
    assert after[1] == (before[2] if behaviour == "endless" else between[2])


@pytest.mark.parametrize("where", ["shown", "hidden"])
def test_a_candidate_that_crashes_where_others_ran_is_judged_again_in_a_new_process(
    stage: Stage, where: str
) -> None:
    said: list[str] = []

    async def scene(device: GraderDevice) -> Any:
        await judged(device, **{"shown": "correct", where: "breaks the next one"})
        before = pids(device)
        honest = job(**{"shown": "correct", where: "breaks easily"})
        report = await device.run(honest, said.append)
        return report, before, pids(device)

    report, before, after = stage.play(scene)
    assert report.status is Status.correct, report.reason
    assert after[:2] == (before[0], before[2])
    assert said.count("it crashed; trying once more in a new process") == 1


def test_a_crash_in_a_new_process_is_a_verdict_at_once(stage: Stage) -> None:
    said: list[str] = []

    async def scene(device: GraderDevice) -> Any:
        first = await device.run(job("kills its worker"), said.append)
        again = await device.run(job("kills its worker"), said.append, verify=True)
        return first.status, again.status

    assert stage.play(scene) == (Status.crash, Status.crash)
    assert not [line for line in said if "once more" in line]


@pytest.mark.parametrize("behaviour", ["correct", "wrong", "prints and is wrong"])
def test_a_healthy_runner_judges_the_next_candidate(stage: Stage, behaviour: str) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, behaviour)
        before = pids(device)
        await judged(device, "correct")
        return before, pids(device)

    before, after = stage.play(scene)
    assert before == after
    assert len({before[0], *before[1], *before[2]} - {None}) == 5


def test_shown_and_hidden_cases_never_run_in_one_process(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> None:
        notes = "notes its process"
        for _ in range(2):
            await judged(device, notes, notes)
        await judged(device, notes, notes, verify=True)
        await judged(device, notes, "kills its worker")
        await judged(device, notes, notes)
        await judged(device, "kills its worker")
        await judged(device, notes, notes)

    stage.play(scene)
    noted = Path(f"{stage.path}.processes").read_text().split()
    # in its hidden case, of which it noted nothing, and once more in new processes
    crashed, again = noted.pop(6), noted.pop(6)
    jobs = [*zip(noted[::2], noted[1::2], strict=True)]
    shown, hidden = (set(processes) for processes in zip(*jobs, strict=True))
    assert jobs[0] == jobs[1] and jobs[2][0] != crashed == jobs[0][0] and again not in shown
    assert len(shown) == len(hidden) == 4, "after a verification and two crashes"
    assert not shown & hidden


def test_a_task_without_hidden_cases_has_no_runner_for_them(stage: Stage) -> None:
    stage.path.write_text(TASK)

    async def scene(device: GraderDevice) -> Any:
        cases = job("correct").cases[:1]
        report = await device.run(Job(cases=cases, tier="fp32"), lambda _: None)
        return report.status, pids(device)

    status, (_, (shown, hidden), (spare, hidden_spare)) = stage.play(scene)
    assert status is Status.correct
    assert None not in (shown, spare) and (hidden, hidden_spare) == (None, None)


@pytest.mark.parametrize("hidden", ["prints and is wrong", "kills its worker"])
def test_what_a_hidden_case_prints_is_never_reported(stage: Stage, hidden: str) -> None:
    async def scene(device: GraderDevice) -> Any:
        failed = await judged(device, "correct", hidden)
        later = await judged(device, "wrong")
        return failed, later, await judged(device, hidden)

    failed, later, control = stage.play(scene)
    assert failed.status is not Status.correct and failed.detail == ""
    assert later.status is Status.wrong_result and later.detail == ""
    assert "words" in control.detail


def test_a_crash_in_a_hidden_case_is_named_without_figures(stage: Stage) -> None:
    report = stage.play(lambda device: judged(device, "prints", "kills its worker"))
    assert report.reason == "its process ended (checking a hidden case): signal SIGSEGV"
    told = report_without_sizes(report)
    assert (told.reason, told.detail) == ("crashes in a hidden case", "")


def test_a_verification_takes_the_spare_runners_and_leaves_those_of_first_verdicts(
    stage: Stage,
) -> None:
    said: list[str] = []

    async def scene(device: GraderDevice) -> Any:
        await device.run(job("correct"), said.append)
        before = pids(device)
        notes = job("notes its process", "notes its process")
        await device.run(notes, said.append, verify=True)
        return before, pids(device)

    before, after = stage.play(scene)
    assert after[:2] == before[:2]
    noted = Path(f"{stage.path}.processes").read_text().split()
    assert tuple(map(int, noted)) == before[2]
    assert not {*before[1], *before[2]} & {*after[2]}
    assert said.count("changing to a new process") == 1
    assert not any(map(alive, before[2])), "only those of a candidate with a digest are kept"


def test_baselines_need_no_runner(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> Any:
        report = await device.run(Job(cases=(), tier=""), lambda _: None)
        return report.status, pids(device)

    status, (grader, runner, spare) = stage.play(scene)
    assert status is Status.correct and grader is not None
    assert (runner, spare) == (None, None)


@pytest.mark.parametrize("where", [0, 1], ids=["shown", "hidden"])
@pytest.mark.parametrize("which", [1, 2], ids=["at work", "spare"])
def test_a_runner_that_is_killed_while_nothing_runs_is_replaced(
    stage: Stage, which: int, where: int
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "correct")
        before = pids(device)
        os.kill(before[which][where], signal.SIGKILL)
        verdict = await judged(device, "correct", verify=which == 2)
        return before, verdict.status, pids(device)

    before, status, after = stage.play(scene)
    assert status is Status.correct
    assert before[0] == after[0] and not {*before[which]} & {*after[1], *after[2]}


def test_a_cancelled_job_costs_grader_and_runner_and_the_spare_that_the_grader_has(
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
    assert before[2] is not None and between == (None, None, None)
    assert status is Status.correct
    assert after[0] != before[0] and after[1] not in before


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


@pytest.mark.parametrize("which", ["unable", "all but one unable"])
def test_a_runner_that_cannot_start_is_no_fault_of_the_candidate(stage: Stage, which: str) -> None:
    late = str(stage.path).replace("scale.yaml", "late.yaml")
    with pytest.raises(
        WorkerError, match=r"^a runner did not start: exit code 1: (.*\n)*.*no memory on the device"
    ):
        stage.play(lambda device: judged(device, "correct"), late, which, late)


def test_a_kill_that_is_cancelled_has_reached_both_runners(stage: Stage) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "correct")
        pair = device._pair
        assert pair is not None
        started = pair.pids
        killing = asyncio.create_task(pair.kill())
        await asyncio.sleep(0)
        killing.cancel()
        await asyncio.wait([killing])
        for _ in range(200):
            if not any(alive(pid or 0) for pid in started):
                break
            await asyncio.sleep(0.02)
        return [pid for pid in started if alive(pid or 0)]

    assert stage.play(scene) == []


def test_a_task_whose_reference_raises_leaves_no_process(stage: Stage) -> None:
    async def scene() -> tuple[int | None, ...]:
        device = GraderDevice(kept().server(SCRIPTED))
        try:
            with pytest.raises(TaskError, match="reference raised ValueError"):
                await device.start(load_task(stage.path), "raising.yaml")
            return pids(device)
        finally:
            await device.close()

    assert kept().run(scene()) == (None, None, None)


def test_no_grader_and_no_runner_outlives_a_parent_that_is_killed(stage: Stage) -> None:
    program = (
        "import asyncio, time\n"
        "from pathlib import Path\n"
        "from tests.evaluate.device.test_grader_device import Stage, judged, pids\n"
        "async def scene(device):\n"
        "    await judged(device, 'correct')\n"
        "    grader, pair, spare = pids(device)\n"
        "    print(grader, *pair, *spare, flush=True)\n"
        "    time.sleep(60)\n"
        f"Stage(Path({str(stage.path.parent)!r})).play(scene)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        started = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(started) == 5
    assert not still_alive(started)


def test_activity_is_measured_in_new_runners_and_nothing_is_judged_where_a_profiler_was(
    stage: Stage,
) -> None:
    async def scene(device: GraderDevice) -> Any:
        await judged(device, "correct")
        found = [pids(device)]
        for behaviour in ("notes its process", "notes its process"):
            profiled = job(behaviour).model_copy(update={"purpose": Purpose.activity})
            assert (await device.run(profiled, lambda _: None)).status is Status.correct
            found.append(pids(device))
        await judged(device, "correct")
        return [*found, pids(device)]

    judging, first, second, after = stage.play(scene)
    processes = Path(f"{stage.path}.processes").read_text().split()
    assert len(set(processes)) == 2 and not {*map(int, processes)} & {*judging[1], *after[1]}
    assert judging[0] == first[0] == second[0] != after[0]
    assert first[1] == second[1] == judging[1], "they are used again where no profiler was"


def test_a_profile_has_the_time_that_a_profiler_takes_to_start() -> None:
    limits = Limits(launch_s=2.0, evaluate_s=20.0)
    allowed, judging = profiling_limits(limits), gpu_limits(limits)
    assert allowed.step_s == judging.step_s + PROFILER_START_S > 10 * judging.step_s
    assert allowed.total_s > allowed.step_s
