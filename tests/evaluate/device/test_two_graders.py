"""What two graders do beside each other, and what happens where the second one cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from evoengine.errors import DeviceError
from evoengine.evaluate.device.grader_device import GraderDevice
from evoengine.evaluate.device.two_graders import MOST_MEMORY, TwoGraders
from evoengine.evaluate.nvml import memory_share
from evoengine.protocols import Job, Purpose
from evoengine.records import Status
from tests.evaluate.device.test_contract import HAS_GPU, Bench, two_scripted_graders
from tests.evaluate.kept_fork_server import kept

Play = Callable[..., Any]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Plays a scene on a started device; `used_memory` as of TwoGraders."""

    def run(scene: Callable[[TwoGraders], Awaitable[Any]], used_memory: float | None = 0.0) -> Any:
        bench = Bench("two scripted graders", tmp_path)

        async def on_device() -> Any:
            device = two_scripted_graders(used_memory)
            try:
                await device.start(bench.task, str(bench.path))
                return await scene(device)
            finally:
                await device.close()

        return kept().run(on_device())

    return run


@pytest.fixture
def job(tmp_path: Path) -> Callable[[str], Job]:
    return lambda behaviour: kept().run(Bench("scripted", tmp_path).job(behaviour))


def silent(_: str) -> None: ...


def searched(job: Job) -> Job:
    """As a search asks for it."""
    return job.model_copy(update={"scored_only": True})


async def started(device: TwoGraders) -> None:
    """Waits until the second grader runs, or cannot."""
    assert device._starting is not None
    await asyncio.wait([device._starting])


async def begin_search(device: TwoGraders, correct: Job) -> None:
    """Judges a correct candidate, after which the second grader runs."""
    await device.run(searched(correct), silent)
    await started(device)


def test_a_verification_and_a_race_end_while_a_first_verdict_is_under_way(
    play: Play, job: Callable[[str], Job]
) -> None:
    endless, correct = job("endless"), job("correct")

    async def scene(device: TwoGraders) -> Any:
        await begin_search(device, correct)
        first = asyncio.create_task(device.run(endless, silent))
        verified = await device.run(correct, silent, verify=True)
        raced = await device.race(correct, correct.model_copy(update={"candidate": "b"}), silent)
        return verified.status, raced.status, first.done(), (await first).status

    assert play(scene) == (Status.correct, Status.correct, False, Status.timeout)


def test_two_elites_sit_at_both_graders(play: Play, job: Callable[[str], Job]) -> None:
    endless, correct = job("endless"), job("correct")

    async def scene(device: TwoGraders) -> Any:
        await begin_search(device, correct)
        sitting = endless.model_copy(update={"sittings": 2})
        first = asyncio.create_task(device.run(sitting, silent, verify=True))
        await asyncio.sleep(0.1)
        other = correct.model_copy(update={"sittings": 2})
        second = await device.run(other, silent, verify=True)
        return second.status, first.done(), (await first).status

    assert play(scene) == (Status.correct, False, Status.timeout)


def diagnosing(job: Job) -> Job:
    return job.model_copy(update={"purpose": Purpose.diagnosis})


def test_a_first_verdict_ends_while_another_candidate_is_diagnosed(
    play: Play, job: Callable[[str], Job]
) -> None:
    endless, correct = job("endless"), job("correct")

    async def scene(device: TwoGraders) -> Any:
        await begin_search(device, correct)
        diagnosis = asyncio.create_task(device.run(diagnosing(endless), silent))
        await asyncio.sleep(0.1)
        first = await device.run(searched(correct), silent)
        return first.status, diagnosis.done(), (await diagnosis).status

    assert play(scene) == (Status.correct, False, Status.timeout)


def test_a_diagnosis_waits_for_verifications_and_races_at_the_second_grader(
    play: Play, job: Callable[[str], Job]
) -> None:
    correct, other = job("correct"), job("correct").model_copy(update={"candidate": "b"})

    async def scene(device: TwoGraders) -> list[str]:
        await begin_search(device, correct)
        ended = list[str]()

        async def noted(name: str, work: Awaitable[Any]) -> None:
            await work
            ended.append(name)

        await asyncio.gather(
            noted("first diagnosis", device.run(diagnosing(correct), silent)),
            noted("second diagnosis", device.run(diagnosing(correct), silent)),
            noted("race", device.race(correct, other, silent)),
            noted("verification", device.run(correct, silent, verify=True)),
        )
        return ended

    assert play(scene) == ["first diagnosis", "race", "verification", "second diagnosis"]


def test_before_there_is_a_second_grader_a_diagnosis_waits_for_first_verdicts(
    play: Play, job: Callable[[str], Job]
) -> None:
    wrong = job("wrong")

    async def scene(device: TwoGraders) -> Any:
        ended = list[str]()

        async def judge(name: str, given: Job) -> Any:
            report = await device.run(given, silent)
            ended.append(name)
            return report

        reports = await asyncio.gather(
            judge("1", wrong), judge("diagnosis", diagnosing(wrong)), judge("2", wrong)
        )
        return ended, reports[1].forensics is not None

    assert play(scene) == (["1", "2", "diagnosis"], True)


def test_a_second_grader_whose_device_a_diagnosis_broke_is_replaced_and_the_first_one_stays(
    play: Play, job: Callable[[str], Job]
) -> None:
    correct, breaking = job("correct"), job("its diagnosis breaks the device")

    async def scene(device: TwoGraders) -> Any:
        await begin_search(device, correct)
        graders = [device._first._grader, device._second._grader]
        diagnosis = await device.run(diagnosing(breaking), silent)
        verified = await device.run(correct, silent, verify=True)
        now = [device._first._grader, device._second._grader]
        return (
            diagnosis.status,
            verified.status,
            [one is it for one, it in zip(graders, now, strict=True)],
        )

    assert play(scene) == (Status.wrong_result, Status.correct, [True, False])


@pytest.mark.parametrize(("used_memory", "graders"), [(0.0, 2), (MOST_MEMORY + 0.01, 1), (None, 1)])
def test_a_device_without_room_for_two_graders_has_one_that_does_everything(
    play: Play, job: Callable[[str], Job], used_memory: float | None, graders: int
) -> None:
    correct, said = searched(job("correct")), list[str]()

    async def scene(device: TwoGraders) -> Any:
        first = await device.run(correct, said.append)
        await started(device)
        verified = await device.run(correct, said.append, verify=True)
        running: list[GraderDevice] = [
            one for one in (device._first, device._second) if one._grader is not None
        ]
        return [first.status, verified.status], len(running)

    assert play(scene, used_memory) == ([Status.correct, Status.correct], graders)
    assert any("one grader does everything" in line for line in said) == (graders == 1)


def test_the_second_grader_starts_after_the_first_correct_verdict_of_a_search(
    play: Play, job: Callable[[str], Job]
) -> None:
    """Then it is known how much memory the task takes; a single verdict needs no second one."""
    asked = [
        (job("correct"), False),
        (job("correct"), True),
        (searched(job("wrong")), False),
        (searched(job("correct")), False),
    ]

    async def scene(device: TwoGraders) -> Any:
        begun = []
        for one, verify in asked:
            await device.run(one, silent, verify)
            begun.append(device._starting is not None)
        return begun

    assert play(scene) == [False, False, False, True]


def test_where_the_second_grader_does_not_start_the_first_one_does_its_work_and_says_so(
    play: Play, job: Callable[[str], Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    search, said = searched(job("correct")), list[str]()

    async def fails(*_: object) -> None:
        raise DeviceError("no such device")

    async def scene(device: TwoGraders) -> Any:
        monkeypatch.setattr(device._second, "start", fails)
        await device.run(search, silent)
        await started(device)
        return (await device.run(search, said.append, verify=True)).status

    assert play(scene) is Status.correct
    assert "one grader does everything: a second one did not start: no such device" in said


def test_while_the_second_grader_starts_the_first_one_verifies_and_races(
    play: Play, job: Callable[[str], Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = searched(job("correct"))

    async def scene(device: TwoGraders) -> Any:
        start, may_start = device._second.start, asyncio.Event()

        async def slow(*given: Any) -> Any:
            await may_start.wait()
            return await start(*given)

        monkeypatch.setattr(device._second, "start", slow)
        await device.run(search, silent)
        verified = await device.run(search, silent, verify=True)
        raced = await device.race(search, search.model_copy(update={"candidate": "b"}), silent)
        early = device._second._grader is None
        may_start.set()
        await started(device)
        late = await device.run(search, silent, verify=True)
        return verified.status, raced.status, early, late.status, device._second._grader is None

    correct = Status.correct
    assert play(scene) == (correct, correct, True, correct, False)


def test_a_verification_goes_to_the_second_grader_once_that_has_prepared_the_cases(
    play: Play, job: Callable[[str], Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = searched(job("correct"))

    async def scene(device: TwoGraders) -> Any:
        run, may_end, asked = device._second.run, asyncio.Event(), list[tuple[Purpose, int]]()

        async def slow(given: Job, *more: Any, **named: Any) -> Any:
            asked.append((given.purpose, len(given.cases)))
            if given.purpose is Purpose.preparation:
                await may_end.wait()
            return await run(given, *more, **named)

        monkeypatch.setattr(device._second, "run", slow)
        await device.run(search, silent)
        await device.run(search, silent, verify=True)
        may_end.set()
        await started(device)
        before = device._second._pair
        await device.run(search, silent, verify=True)
        return asked, before

    cases = len(search.cases)
    assert play(scene) == ([(Purpose.preparation, cases), (Purpose.verdict, cases)], None), (
        "it needs no runner to prepare"
    )


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.skipif(not HAS_GPU, reason="needs a CUDA device")
def test_on_a_gpu_the_second_grader_diagnoses_and_verifies_afterwards(tmp_path: Path) -> None:
    bench = Bench("two graders on cuda", tmp_path)

    async def scene(device: Any) -> Any:
        correct, wrong = await bench.job("correct"), await bench.job("wrong")
        await device.run(correct, silent)
        await started(device)
        assert device._starting.result() == "", "the second grader started"
        quick = wrong.model_copy(update={"purpose": Purpose.quick_verdict})
        reports = [await device.run(job, silent) for job in (quick, diagnosing(wrong))]
        assert device._second._pair is not None, "the diagnosis ran there"
        return reports, (await device.run(correct, silent, verify=True)).status

    (quick, diagnosis), verified = bench.play(scene)
    assert (quick.status, quick.forensics) == (Status.wrong_result, None)
    assert diagnosis.status is Status.wrong_result and diagnosis.forensics.diagnoses
    assert verified is Status.correct


def test_memory_in_use_is_not_known_of_a_device_that_is_not_there() -> None:
    assert memory_share(99) is None
