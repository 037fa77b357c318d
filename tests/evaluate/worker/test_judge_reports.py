"""The report of a job: what was found before it ended, and where it ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from evoengine.candidate.binding import CasePlan
from evoengine.errors import TaskError
from evoengine.evaluate.worker import judge
from evoengine.evaluate.worker.backend import (
    Announce,
    NoActivity,
    SanitizedCase,
    TimedCase,
    shown,
)
from evoengine.evaluate.worker.candidate_failures import CannotLaunch, Cheated
from evoengine.protocols import CompiledCase, Job, Purpose, Report
from evoengine.records import (
    CaseCheck,
    CaseModel,
    CheckedRun,
    Forensics,
    GpuState,
    InputSetCheck,
    KernelActivity,
    Status,
)
from tests.small import small_task

GPU = GpuState(temperature_c=41)


def case_of(name: str) -> CompiledCase:
    plan = CasePlan(case=name, hidden=name == "odd", macros={}, scratch={}, launches=())
    return CompiledCase(plan=plan, code_path="", functions={})


class ScriptedBackend:
    """Returns what `sanitized`, `timed` and `profiled` hold, and raises the failures among them."""

    timing_phase = "scripted"
    errors = ()

    def __init__(
        self,
        sanitized: list[Any] | None = None,
        timed: Sequence[Any] = (),
        profiled: tuple[KernelActivity, ...] | Exception = (),
        wrong_cases: Sequence[str] = (),
        unserved: Sequence[str] = (),
    ) -> None:
        self.sanitized = sanitized
        self.timed = timed
        self.profiled = profiled
        self.wrong_cases = wrong_cases
        self.unserved = unserved  # cases on which the reference fails

    def prepare(self, compiled: CompiledCase, job: Job, announce: Announce) -> None:
        if compiled.plan.case in self.unserved:
            raise TaskError("the reference cannot reshape its input")

    def check(self, compiled: CompiledCase, tier: str, announce: Announce) -> CaseCheck:
        plan = compiled.plan
        ok = plan.case not in self.wrong_cases
        return CaseCheck(case=plan.case, hidden=plan.hidden, ok=ok, sets=(WRONG,))

    def sanitize(self, job: Job, announce: Announce) -> Iterator[SanitizedCase] | None:
        announce("reading", True)
        return None if self.sanitized is None else self._played(self.sanitized, job, announce)

    def time(self, job: Job, announce: Announce) -> Iterator[TimedCase]:
        return self._played(self.timed, job, announce)

    def gpu_state(self) -> GpuState:
        return GPU

    def activity(self, job: Job, announce: Announce) -> tuple[KernelActivity, ...]:
        announce("measuring", True)
        if isinstance(self.profiled, Exception):
            raise self.profiled
        return self.profiled

    def _played(self, script: Sequence[Any], job: Job, announce: Announce) -> Iterator[Any]:
        for compiled, found in zip(job.cases, script, strict=False):
            announce(f"running {shown(compiled)}", True)
            if isinstance(found, Exception):
                raise found
            yield found(compiled)


class NotingExaminer:
    """Finds nothing, and notes which case it was given, and which ones were right before."""

    has_device = healthy = True

    def __init__(self) -> None:
        self.given: list[tuple[str, list[str]]] = []

    def examine(
        self, compiled: CompiledCase, job: Job, check: CaseCheck, passed: list[str], _: Announce
    ) -> Forensics:
        self.given.append((compiled.plan.case, passed))
        return Forensics(case=check.case, distribution="normal", output="out")


def report(
    backend: ScriptedBackend,
    purpose: Purpose = Purpose.verdict,
    examiner: Any = None,
    cases: Sequence[str] = ("plain", "odd"),
    **fields: Any,
) -> Report:
    """The report of a judge on cases that are right when checked, but for those of the backend."""
    made = judge.Judge(small_task(), backend, lambda *_: None, examiner)  # type: ignore[arg-type]  # it has no baselines
    given = tuple(case_of(case) for case in cases)
    return made.run(Job(cases=given, tier="fp32", purpose=purpose, **fields))


WRONG = InputSetCheck(
    distribution="normal",
    seed=0,
    ok=False,
    max_abs=1.0,
    rel_rmse=1.0,
    failing_share=1.0,
    worst_index=(0,),
    worst_output="out",
    limit_abs=0.0,
    limit_rel_rmse=0.0,
    trusted_max_abs=0.0,
    trusted_rel_rmse=0.0,
    nan_count=0,
)
CLEAN = CheckedRun(checks=("races",), blocks=1, total_blocks=1)
RACY = CheckedRun(checks=("races",), blocks=1, total_blocks=1, findings=("a race", "another"))
MODEL = CaseModel(case="plain", target="L4", launches=())


def clean(compiled: CompiledCase) -> SanitizedCase:
    return SanitizedCase(compiled, CLEAN)


def modelled(compiled: CompiledCase) -> TimedCase:
    return TimedCase(compiled, model=MODEL)


def test_a_job_without_faults_has_every_check_and_every_time() -> None:
    found = report(ScriptedBackend([clean, clean], [modelled, modelled]))
    assert (found.status, found.reason) == (Status.correct, "")
    assert [check.checked for check in found.checks] == [CLEAN, CLEAN]
    assert found.modelled == (MODEL, MODEL)
    assert list(found.phases_s) == ["checked", "check", "scripted"]
    assert found.gpu_state == GPU


def test_the_first_findings_of_checked_mode_end_the_job_with_their_case_alone() -> None:
    found = report(ScriptedBackend([clean, lambda compiled: SanitizedCase(compiled, RACY)]))
    assert (found.status, found.reason) == (Status.fault, "a race (running a hidden case)")
    assert found.detail == "a race\nanother"
    (check,) = found.checks
    assert (check.case, check.hidden, check.ok, check.checked) == ("odd", True, False, RACY)
    assert list(found.phases_s) == ["checked"]


def test_a_failure_in_checked_mode_ends_the_job_without_a_check() -> None:
    found = report(ScriptedBackend([clean, CannotLaunch("refused")]))
    assert (found.status, found.reason) == (
        Status.launch_error,
        "refused (running a hidden case)",
    )
    assert found.checks == () and list(found.phases_s) == ["checked"]


def test_a_failure_while_timing_leaves_the_checks_and_no_time() -> None:
    found = report(ScriptedBackend(None, [modelled, Cheated("wrote beside")]))
    assert (found.status, found.reason) == (Status.cheat, "wrote beside (running a hidden case)")
    assert [(check.case, check.checked) for check in found.checks] == [
        ("plain", None),
        ("odd", None),
    ]
    assert found.modelled == () and list(found.phases_s) == ["check", "scripted"]
    assert found.gpu_state == GPU


def test_a_wrong_output_of_a_timed_launch_is_one_more_check_and_ends_the_job() -> None:
    found = report(
        ScriptedBackend(None, [lambda compiled: TimedCase(compiled, model=MODEL, wrong=(WRONG,))])
    )
    assert found.status is Status.wrong_result
    assert found.reason.startswith("right when checked, wrong when timed: case plain: 1 of 1")
    assert [(check.case, check.ok) for check in found.checks] == [
        ("plain", True),
        ("odd", True),
        ("plain", False),
    ]
    assert found.modelled == ()


@pytest.mark.parametrize(
    ("purpose", "given"),
    [
        (Purpose.verdict, [("odd", ["plain"])]),
        (Purpose.diagnosis, [("odd", ["plain"])]),
        (Purpose.quick_verdict, []),
        (Purpose.outputs, []),
    ],
)
def test_a_wrong_check_is_examined_where_that_is_asked_for(
    purpose: Purpose, given: list[tuple[str, list[str]]]
) -> None:
    """Of a quick verdict a job of its own is asked for it: the next candidate need not wait."""
    examiner = NotingExaminer()
    found = report(ScriptedBackend(wrong_cases=["odd"]), purpose, examiner)
    assert found.status is Status.wrong_result
    assert [check.ok for check in found.checks] == [True, False]
    assert examiner.given == given
    assert (found.forensics is not None) == ("forensics" in found.phases_s) == bool(given)


def test_a_diagnosis_of_one_case_knows_which_ones_were_right_before_it() -> None:
    examiner = NotingExaminer()
    backend = ScriptedBackend(wrong_cases=["odd"])
    report(backend, Purpose.diagnosis, examiner, ["odd"], passed=("plain", "flipped"))
    assert examiner.given == [("odd", ["plain", "flipped"])]


@pytest.mark.parametrize(("has_smaller", "examined"), [(True, []), (False, [("odd", ["plain"])])])
def test_a_wrong_check_is_left_to_a_diagnosis_where_its_case_has_a_smaller_version(
    monkeypatch: pytest.MonkeyPatch, has_smaller: bool, examined: list[tuple[str, list[str]]]
) -> None:
    found = ["plain with N=41"] if has_smaller else []
    monkeypatch.setattr(judge, "smaller_versions", lambda _, case: found if case == "odd" else [])
    examiner = NotingExaminer()
    made = report(ScriptedBackend(wrong_cases=["odd"]), examiner=examiner, smaller_first=True)
    assert made.status is Status.wrong_result and examiner.given == examined
    assert (made.forensics is None) is has_smaller


def test_a_small_case_that_the_reference_does_not_serve_is_passed_over() -> None:
    examiner = NotingExaminer()
    small = ("plain with N=8", "plain with N=3")
    backend = ScriptedBackend(wrong_cases=small, unserved=small[:1])
    found = report(backend, Purpose.diagnosis, examiner, cases=small)
    assert found.status is Status.wrong_result and examiner.given == [("plain with N=3", [])]
    with pytest.raises(TaskError, match="cannot reshape"):
        report(ScriptedBackend(unserved=["plain"]), Purpose.diagnosis, examiner, cases=["plain"])


def test_a_diagnosis_that_sees_no_wrong_output_is_correct_and_times_nothing() -> None:
    examiner = NotingExaminer()
    found = report(ScriptedBackend(None, [modelled, modelled]), Purpose.diagnosis, examiner)
    assert (found.status, found.forensics, found.modelled) == (Status.correct, None, ())
    assert list(found.phases_s) == ["check"] and examiner.given == []


@pytest.mark.parametrize("purpose", [Purpose.verdict, Purpose.quick_verdict])
def test_what_was_right_when_checked_and_wrong_when_timed_is_examined_at_once(
    purpose: Purpose,
) -> None:
    """A further job may never see it."""
    examiner = NotingExaminer()

    def wrong(compiled: CompiledCase) -> TimedCase:
        return TimedCase(compiled, wrong=(WRONG,))

    found = report(ScriptedBackend(None, [wrong]), purpose, examiner)
    assert found.status is Status.wrong_result and found.forensics is not None
    assert [case for case, _ in examiner.given] == ["plain"]


ACTIVITY = KernelActivity(
    case="plain", baseline="torch", candidate_us=5.0, baseline_us=7.0, candidate_launches=()
)


def test_a_job_for_activity_is_neither_checked_nor_timed() -> None:
    found = report(
        ScriptedBackend([clean, clean], [modelled, modelled], (ACTIVITY,)), Purpose.activity
    )
    assert (found.status, found.activity, found.activity_problem) == (
        Status.correct,
        (ACTIVITY,),
        "",
    )
    assert found.checks == found.modelled == () and list(found.phases_s) == ["activity"]
    assert report(ScriptedBackend(None, (), (ACTIVITY,))).activity == ()


def test_without_a_profiler_nobody_is_at_fault_and_a_candidate_that_fails_in_it_is() -> None:
    found = report(ScriptedBackend(profiled=NoActivity("CUPTI is not permitted")), Purpose.activity)
    assert (found.status, found.activity) == (Status.correct, ())
    assert found.activity_problem == "CUPTI is not permitted"
    failed = report(ScriptedBackend(profiled=CannotLaunch("refused")), Purpose.activity)
    assert (failed.status, failed.reason) == (Status.launch_error, "refused (measuring)")
