"""A verdict on a wrong kernel, whose diagnosis is a job of its own on a GPU."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from evoengine.candidate import kernel_file
from evoengine.errors import DeviceError, EvoError, TaskError, WorkerError
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.local_executor import LocalExecutor
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_EMULATOR, SCRIPTED_GPU
from evoengine.protocols import Job, Purpose, Report, SearchBar
from evoengine.records import (
    CaseCheck,
    Diagnosis,
    DiagnosisKind,
    Environment,
    Forensics,
    Status,
    Verdict,
)
from tests.scale_task import kernel, load_scale_task

SENTENCE = "out is 1.5 times what it should be at N = 77"
FOUND = Forensics(
    case="large",
    distribution="normal",
    output="out",
    diagnoses=(Diagnosis(kind=DiagnosisKind.race, sentence=SENTENCE, share=1.0),),
)


def check(case: str, ok: bool, hidden: bool = False) -> CaseCheck:
    return CaseCheck(case=case, hidden=hidden, ok=ok, sets=())


WRONG = Report(
    status=Status.wrong_result,
    reason="case large: 1 of 9 input sets is wrong",
    checks=(check("small", True), check("large", False)),
    phases_s={"check": 0.02},
)
DIAGNOSED = Report(
    status=Status.wrong_result,
    reason="case large: 2 of 9 input sets are wrong",
    checks=(check("large", False),),
    phases_s={"check": 0.5, "forensics": 1.5},
    forensics=FOUND,
)


class Answering:
    """A device that answers a verdict and a diagnosis."""

    def __init__(
        self, verdict: Report, diagnosis: Report | EvoError, environment: Environment = SCRIPTED_GPU
    ) -> None:
        self.environment = environment
        self.verdict = verdict
        self.diagnosis = diagnosis
        self.on_small: Report | EvoError = Report(status=Status.correct)
        self.asked: list[tuple[Job, bool]] = []

    async def start(self, task: Any, task_path: str) -> Environment:
        return self.environment

    async def run(self, job: Job, _: Any, verify: bool = False) -> Report:
        self.asked.append((job, verify))
        if job.purpose is not Purpose.diagnosis:
            return self.verdict
        is_small = not {item.plan.case for item in job.cases} <= {"small", "large", "odd"}
        answer = self.on_small if is_small else self.diagnosis
        if isinstance(answer, EvoError):
            raise answer
        return answer

    async def close(self) -> None: ...


def judged(folder: Path, device: Any, verify: bool = False) -> tuple[Verdict, list[str]]:
    """The verdict on a kernel, and what was told meanwhile."""
    is_modelled = device.environment.is_modelled
    said = list[str]()

    async def run() -> Verdict:
        executor = LocalExecutor(
            load_scale_task(folder),
            str(folder),
            CompilePool(1),
            device,
            {"large": "torch.mul"},
            CompilePool(1, module=CLANG) if is_modelled else None,
        )
        try:
            await executor.start()
            candidate = kernel_file.parse(kernel("scale_a"))
            return await executor.evaluate(candidate, said.append, verify, SearchBar())
        finally:
            await executor.close()

    return asyncio.run(run()), said


def test_a_wrong_kernel_has_its_findings_and_what_they_cost_apart_from_its_check(
    tmp_path: Path,
) -> None:
    device = Answering(WRONG, DIAGNOSED)
    verdict, _ = judged(tmp_path, device)
    assert (verdict.status, verdict.reason) == (WRONG.status, WRONG.reason)
    assert verdict.checks == WRONG.checks
    assert verdict.forensics == FOUND
    assert verdict.phases_s["check"] == 0.02 and verdict.phases_s["forensics"] == 2.0
    assert list(verdict.phases_s) == ["compile", "check", "forensics", "total"]


def test_the_diagnosis_is_asked_of_the_case_that_was_wrong_and_told_which_were_right(
    tmp_path: Path,
) -> None:
    device = Answering(WRONG, DIAGNOSED)
    judged(tmp_path, device)
    (first, verified), (second, again) = device.asked
    assert (first.purpose, second.purpose) == (Purpose.quick_verdict, Purpose.diagnosis)
    assert not verified and not again
    assert [item.plan.case for item in second.cases] == ["large"]
    assert second.passed == ("small",) and not second.checked
    assert (second.tier, second.candidate, second.baselines) == (
        first.tier,
        first.candidate,
        first.baselines,
    )


@pytest.mark.parametrize(
    ("diagnosis", "problem"),
    [
        (Report(status=Status.correct), "no output was wrong when the case was checked once more"),
        (Report(status=Status.crash, reason="its process ended"), "crash: its process ended"),
        (Report(status=Status.timeout, reason="it hangs"), "timeout: it hangs"),
        (WorkerError("the grader died"), "the grader died"),
        (DeviceError("no such device"), "no such device"),
        (TaskError("the reference has not ended"), "the reference has not ended"),
    ],
    ids=["correct", "crash", "timeout", "worker", "device", "task"],
)
def test_a_diagnosis_that_finds_nothing_or_dies_leaves_the_verdict_as_it_is(
    tmp_path: Path, diagnosis: Report | EvoError, problem: str
) -> None:
    verdict, said = judged(tmp_path, Answering(WRONG, diagnosis))
    assert (verdict.status, verdict.reason) == (WRONG.status, WRONG.reason)
    assert verdict.checks == WRONG.checks
    assert verdict.forensics is not None and verdict.forensics.diagnoses == ()
    assert verdict.forensics.problem.startswith(f"not diagnosed: {problem}")
    notes = [line for line in said if line.startswith("note: the diagnosis was given up: ")]
    assert len(notes) == isinstance(diagnosis, EvoError)


@pytest.mark.parametrize(
    "diagnosis",
    [
        DIAGNOSED.model_copy(update={"checks": (check("odd", False, hidden=True),)}),
        Report(status=Status.crash, reason="its process ended at N = 77"),
        WorkerError("the grader died at N = 77"),
    ],
    ids=["found", "crash", "worker"],
)
def test_of_a_hidden_case_a_diagnosis_says_one_phrase_of_a_few(
    tmp_path: Path, diagnosis: Report | EvoError
) -> None:
    checks = (check("large", True), check("odd", False, hidden=True))
    hidden = WRONG.model_copy(update={"checks": checks, "reason": "wrong in a hidden case"})
    verdict, _ = judged(tmp_path, Answering(hidden, diagnosis))
    assert verdict.reason == "is wrong in a hidden case" and verdict.forensics is not None
    assert "77" not in verdict.forensics.model_dump_json()
    assert "odd" not in verdict.forensics.model_dump_json()
    told = [item.kind for item in verdict.forensics.diagnoses]
    assert told == (
        [DiagnosisKind.race] if isinstance(diagnosis, Report) and diagnosis.forensics else []
    )


ON_ODD = Forensics(case="small with N=641", distribution="normal", output="y", number=3)
SMALL_CHECKS = (check("small with N=641", False),)


@pytest.fixture
def hidden_is_wrong(tmp_path: Path) -> Answering:
    """A device that finds the candidate wrong in a hidden case alone."""
    checks = (check("large", True), check("odd", False, hidden=True))
    hidden = WRONG.model_copy(update={"checks": checks, "reason": "wrong in a hidden case"})
    return Answering(hidden, DIAGNOSED)


def test_what_is_wrong_in_a_hidden_case_is_told_of_an_odd_one_that_nobody_hides(
    tmp_path: Path, hidden_is_wrong: Answering
) -> None:
    found = ON_ODD.model_copy(update={"diagnoses": FOUND.diagnoses})
    hidden_is_wrong.on_small = DIAGNOSED.model_copy(
        update={"forensics": found, "checks": SMALL_CHECKS}
    )
    verdict, _ = judged(tmp_path, hidden_is_wrong)
    assert verdict.reason == "is wrong in a hidden case" and verdict.forensics == found
    _, (job, _) = hidden_is_wrong.asked
    assert [item.plan.case for item in job.cases] == ["small with N=641", "large with N=40961"]


@pytest.mark.parametrize(
    "on_small",
    [
        Report(status=Status.correct, checks=(check("small with N=641", True),)),
        Report(status=Status.wrong_result, forensics=ON_ODD, checks=SMALL_CHECKS),
        Report(status=Status.crash, reason="its process ended"),
        WorkerError("the grader died"),
    ],
    ids=["right", "nothing found", "crash", "worker"],
)
def test_where_small_cases_tell_nothing_the_case_itself_is_looked_at(
    tmp_path: Path, hidden_is_wrong: Answering, on_small: Report | EvoError
) -> None:
    hidden_is_wrong.on_small = on_small
    verdict, _ = judged(tmp_path, hidden_is_wrong)
    _, _, (job, _) = hidden_is_wrong.asked
    assert [item.plan.case for item in job.cases] == ["odd"]
    right = [it.case for it in on_small.checks if it.ok] if isinstance(on_small, Report) else []
    assert job.passed == ("large", *right)
    assert verdict.forensics is not None and verdict.forensics.case == "a hidden case"


@pytest.mark.parametrize(
    "report",
    [
        Report(status=Status.crash, reason="its process ended (checking large)"),
        Report(status=Status.timeout, reason="checking large took longer than 10 s"),
        # right when checked, wrong when timed: that call was examined where it was seen
        WRONG.model_copy(update={"forensics": FOUND}),
    ],
    ids=["crash", "timeout", "diagnosed"],
)
def test_nothing_is_asked_where_nothing_was_wrong_or_it_is_known(
    tmp_path: Path, report: Report
) -> None:
    device = Answering(report, DIAGNOSED)
    verdict, _ = judged(tmp_path, device)
    assert verdict.forensics == report.forensics and len(device.asked) == 1


@pytest.mark.parametrize(
    ("environment", "verify"), [(SCRIPTED_GPU, True), (SCRIPTED_EMULATOR, False)]
)
def test_a_verification_and_an_emulator_examine_what_is_wrong_in_the_job_itself(
    tmp_path: Path, environment: Environment, verify: bool
) -> None:
    device = Answering(WRONG.model_copy(update={"forensics": FOUND}), DIAGNOSED, environment)
    verdict, _ = judged(tmp_path, device, verify)
    assert verdict.forensics == FOUND
    assert [job.purpose for job, _ in device.asked] == [Purpose.verdict]
