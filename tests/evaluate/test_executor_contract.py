"""What every executor keeps, whatever a candidate is: one suite over all implementations."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from evoengine.candidate import kernel_file
from evoengine.errors import DeviceError
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.device.grader_device import cuda_device
from evoengine.evaluate.device.worker_device import emulator_device
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.scripted.scripted_executor import (
    SCRIPTED_EMULATOR,
    SCRIPTED_GPU,
    ScriptedExecutor,
)
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule
from evoengine.protocols import ActivityReport, Executor
from evoengine.records import Interval, Race, RaceResult, Status, Verdict
from evoengine.task.load import load_task
from tests.evaluate.device.kernels import source
from tests.evaluate.device.test_contract import TASK

SCRIPTED = {"scripted": SCRIPTED_GPU, "scripted emulator": SCRIPTED_EMULATOR}
KINDS = [*SCRIPTED, "emulator", pytest.param("cuda", marks=pytest.mark.gpu)]
# Those that measure race; the others refuse to.
MEASURING = ["scripted", pytest.param("cuda", marks=pytest.mark.gpu)]
MODELLING = ["scripted emulator", "emulator"]
ALWAYS_CORRECT = VerdictRule(correct_share=1.0, unstable_share=0.0)


def make(kind: str, folder: Path) -> Executor:
    """An executor that was not started, for the task `scale` in `folder`."""
    (folder / "scale.py").write_text("def forward(x):\n    return x * 2\n")
    path = folder / "scale.yaml"
    path.write_text(TASK)
    task = load_task(path)
    if kind in SCRIPTED:
        return ScriptedExecutor(task, SCRIPTED[kind], ALWAYS_CORRECT)
    if kind == "cuda":
        return LocalExecutor(task, str(path), CompilePool(2), cuda_device(0))
    device = emulator_device("h200", ("bounds",), folder / "answers", threads=1)
    clang = CompilePool(1, module=CLANG)
    return LocalExecutor(task, str(path), CompilePool(1), device, clang=clang)


def skip_without_its_device(kind: str) -> None:
    if kind == "cuda" and not cuda_devices().names:
        pytest.skip("needs a CUDA device")


class Started:
    """An executor that serves several tests, since starting one takes seconds."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.compiles = kind not in SCRIPTED
        self.executor = make(kind, folder)
        self.runner = asyncio.Runner()
        self.start = self.runner.run(self.executor.start())

    def verdicts(self, *sources: str, verify: bool = False) -> list[Verdict]:
        """Of all `sources` at once."""

        async def judged() -> list[Verdict]:
            candidates = [kernel_file.parse(text) for text in sources]
            return await asyncio.gather(
                *(
                    self.executor.evaluate(candidate, lambda _: None, verify)
                    for candidate in candidates
                )
            )

        return self.runner.run(judged())

    def race(self, newcomer: str, holder: str, steps: list[str] | None = None) -> Race:
        """Between two correct sources; the holder holds its place by its verification's score."""
        (verdict,) = self.verdicts(holder, verify=True)
        score = verdict.score or ANY_SCORE
        sides = kernel_file.parse(newcomer), kernel_file.parse(holder)
        progress = (lambda _: None) if steps is None else steps.append
        return self.runner.run(self.executor.race(*sides, score, progress))

    def activity(self, source: str) -> ActivityReport:
        return self.runner.run(self.executor.activity(kernel_file.parse(source), lambda _: None))

    def close(self) -> None:
        self.runner.run(self.executor.close())
        self.runner.run(self.executor.close())
        self.runner.close()


@pytest.fixture(scope="module", params=KINDS)
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Started]:
    skip_without_its_device(request.param)
    found = Started(request.param, tmp_path_factory.mktemp("executor"))
    try:
        yield found
    finally:
        found.close()  # twice: more than once is safe


CORRECT = source("correct")
OTHER = CORRECT.replace("int i =", "int /* another one */ i =", 1)
ANY_SCORE = Interval(value=1.0, low=0.9, high=1.1)


def test_a_correct_candidate_has_a_score_in_its_tier_and_the_environment_of_the_start(
    started: Started,
) -> None:
    (verdict,) = started.verdicts(CORRECT)
    assert verdict.status is Status.correct, verdict
    assert verdict.tier == "fp32" and verdict.score is not None and verdict.latency_us is not None
    assert verdict.environment == started.start.environment


def test_times_are_measured_against_a_baseline_of_the_start_or_modelled(started: Started) -> None:
    (verdict,) = started.verdicts(CORRECT)
    assert verdict.is_modelled == started.start.environment.is_modelled
    if verdict.is_modelled:
        assert (started.start.baselines, verdict.speedup) == ({}, None)
    else:
        assert started.start.baselines.keys() == {"small"} and verdict.speedup is not None
        assert started.start.baseline_us["small"][started.start.baselines["small"]] > 0


def test_activity_is_of_every_timed_case_or_says_why_there_is_none(started: Started) -> None:
    (verdict,) = started.verdicts(CORRECT)
    found = started.activity(CORRECT)
    if verdict.is_modelled or not started.compiles:
        assert found.cases == () and re.search("no kernel .*is run|no kernel runs", found.problem)
        return
    assert found.problem == ""
    (case,) = found.cases
    assert (case.case, case.baseline) == ("small", started.start.baselines["small"])
    assert len(case.candidate_launches) == 1 and case.baseline_us > 0
    # a replay has what lies between launches, too; a kernel that is launched alone starts slower
    assert 0 < case.candidate_us < verdict.latency_us.value + 3.0
    (again,) = started.verdicts(CORRECT)
    assert again.status is Status.correct, "a job after it finds a device without a profiler"


def test_a_candidate_that_does_not_compile_has_no_activity_and_the_reason(
    started: Started,
) -> None:
    if started.compiles and not started.start.environment.is_modelled:
        found = started.activity(CORRECT.replace("precision: fp32", "precision: fp64"))
        assert found.cases == () and "no tier 'fp64'" in found.problem


@pytest.mark.parametrize(("old", "new", "status", "says"), [
    ("precision: fp32", "precision: fp64", Status.rejected, "no tier 'fp64'"),
    ("args: [x, out, N]", "args: [x, z, N]", Status.rejected, "unknown name 'z'"),
    ("shared: 0", "shared: 300000", Status.over_limits, "asks for 300000 bytes of shared memory"),
    ('extern "C" __global__', '#include "/etc/hostname"\nextern "C" __global__', Status.rejected, "not allowed"),
])  # fmt: skip
def test_what_is_wrong_with_a_header_is_a_status(
    started: Started, old: str, new: str, status: Status, says: str
) -> None:
    assert old in CORRECT
    (verdict,) = started.verdicts(CORRECT.replace(old, new, 1))
    assert verdict.status is status and says in verdict.reason, verdict
    assert verdict.score is None and verdict.environment == started.start.environment


@pytest.mark.parametrize(("text", "status"), [
    (CORRECT.replace("int i =", "int bug; i =", 1), Status.compile_error),
    (source("wrong"), Status.wrong_result),
    (source("leaves a NaN"), Status.wrong_result),
])  # fmt: skip
def test_what_is_wrong_with_the_code_is_a_status_where_it_is_compiled(
    started: Started, text: str, status: Status
) -> None:
    (verdict,) = started.verdicts(text)
    assert verdict.status is (status if started.compiles else Status.correct), verdict
    assert verdict.reason and verdict.tier == "fp32"


def test_a_wrong_result_comes_with_its_diagnosis_whose_seconds_are_a_phase(
    started: Started,
) -> None:
    if started.compiles:
        (verdict,) = started.verdicts(source("wrong"))
        assert verdict.forensics is not None and verdict.forensics.output == "out"
        assert verdict.forensics.diagnoses, verdict.forensics
        assert {"compile", "check", "forensics", "total"} <= verdict.phases_s.keys()


def test_candidates_that_are_judged_at_once_have_the_verdicts_that_they_have_alone(
    started: Started,
) -> None:
    sources = [CORRECT, source("wrong"), CORRECT.replace("precision: fp32", "precision: fp64")]
    at_once = started.verdicts(*sources)
    alone = [started.verdicts(text)[0] for text in sources]
    assert [item.status for item in at_once] == [item.status for item in alone]
    assert [item.code_digest for item in at_once] == [item.code_digest for item in alone]


def test_a_verification_finds_the_same_code_and_status(started: Started) -> None:
    first, verification = (
        started.verdicts(CORRECT)[0],
        started.verdicts(CORRECT, verify=True)[0],
    )
    assert verification.status is first.status is Status.correct
    assert verification.code_digest == first.code_digest != ""


def test_other_code_has_another_digest(started: Started) -> None:
    first, other = started.verdicts(CORRECT, source("wrong"))
    assert first.code_digest != other.code_digest


def test_progress_is_reported_in_one_line_each(started: Started) -> None:
    steps: list[str] = []
    candidate = kernel_file.parse(CORRECT)
    started.runner.run(started.executor.evaluate(candidate, steps.append))
    assert steps and all(step and "\n" not in step for step in steps)


@pytest.fixture(scope="module", params=MEASURING)
def measuring(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Started]:
    """An executor whose times are measured."""
    skip_without_its_device(request.param)
    found = Started(request.param, tmp_path_factory.mktemp("racing"))
    try:
        yield found
    finally:
        found.close()


def test_a_race_has_a_result_and_says_in_one_line_why(measuring: Started) -> None:
    steps: list[str] = []
    race = measuring.race(OTHER, CORRECT, steps)
    assert race.reason and "\n" not in race.reason
    assert steps and all(step and "\n" not in step for step in steps)
    if race.result is not RaceResult.void:
        assert race.ratio and race.newcomer and race.holder
        assert race.ratio.low <= race.ratio.value <= race.ratio.high
    for timing in race.timings:
        counts = (timing.newcomer_us, timing.holder_us, timing.baseline_us, timing.calls)
        assert {len(samples) for samples in counts} == {len(timing.groups)} != {0}


def test_a_race_is_won_only_where_the_interval_of_the_ratio_is_below_one(
    measuring: Started,
) -> None:
    """Both ways around at most one is won, and nobody wins against itself."""
    there, back = measuring.race(OTHER, CORRECT), measuring.race(CORRECT, OTHER)
    for race in (there, back):
        assert race.result is not RaceResult.won or (race.ratio and race.ratio.high < 1)
    assert not there.result is back.result is RaceResult.won
    assert measuring.race(CORRECT, CORRECT).result is not RaceResult.won


@pytest.mark.parametrize("kind", MODELLING)
def test_modelled_times_are_not_raced(kind: str, tmp_path: Path) -> None:
    found = Started(kind, tmp_path)
    try:
        with pytest.raises(DeviceError, match="modelled times are not raced"):
            found.race(OTHER, CORRECT)
    finally:
        found.close()


@pytest.mark.parametrize("kind", MEASURING)
def test_a_race_before_the_start_is_an_error(kind: str, tmp_path: Path) -> None:
    skip_without_its_device(kind)

    async def run() -> None:
        executor = make(kind, tmp_path)
        sides = kernel_file.parse(OTHER), kernel_file.parse(CORRECT)
        with pytest.raises(DeviceError, match="asked for a race before it was started"):
            await executor.race(*sides, ANY_SCORE, lambda _: None)
        await executor.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", KINDS)
def test_close_before_the_start_and_twice_is_safe_and_a_verdict_before_the_start_an_error(
    kind: str, tmp_path: Path
) -> None:
    skip_without_its_device(kind)

    async def run() -> None:
        executor = make(kind, tmp_path)
        with pytest.raises(DeviceError, match="asked for a verdict before it was started"):
            await executor.evaluate(kernel_file.parse(CORRECT), lambda _: None)
        await executor.close()
        await executor.close()

    asyncio.run(run())
