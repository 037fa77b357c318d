"""Judges one job: sanitizes it, checks every case, times it, reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from evoengine.errors import TaskError
from evoengine.evaluate.worker.backend import (
    Announce,
    Backend,
    NoActivity,
    SanitizedCase,
    TimedCase,
    shown,
)
from evoengine.evaluate.worker.candidate_failures import CandidateFailure
from evoengine.evaluate.worker.check import explain, worst_of_each
from evoengine.evaluate.worker.forensics.examiner import Examiner
from evoengine.protocols import CompiledCase, Job, Purpose, Report
from evoengine.records import (
    CaseCheck,
    CaseModel,
    CaseTiming,
    CheckedRun,
    Forensics,
    KernelActivity,
    Status,
)
from evoengine.task.schema import Task
from evoengine.task.small_cases import smaller_versions


class Judge:
    """Judges jobs of one task on one device."""

    def __init__(
        self, task: Task, backend: Backend, announce: Announce, examiner: Examiner | None = None
    ) -> None:
        """`examiner` says what is wrong with a wrong result; without it, nobody does."""
        self.task = task
        self.backend = backend
        self.announce = announce
        self.examiner = examiner
        self.healthy = True

    @property
    def has_device(self) -> bool:
        """Whether this process still has a device that answers."""
        return self.examiner is None or self.examiner.has_device

    def run(self, job: Job) -> Report:
        """The report on `job`; sets `healthy` to false when this process must be replaced."""
        if not job.cases:
            return self._baselines()
        job_run = JobRun(self, job)
        try:
            job_run.run()
        except CandidateFailure as failure:
            self._end(job_run, failure)
        except self.backend.errors as error:
            if not job_run.candidate_may_run:
                raise
            self._end(job_run, self.backend.failure(error))
        return job_run.report()

    def _end(self, job_run: JobRun, failure: CandidateFailure) -> None:
        job_run.end(failure.status, str(failure), failure.detail)
        self.healthy = failure.healthy

    def _baselines(self) -> Report:
        found = {}
        for case in self.task.cases:
            self.announce(f"timing baselines on {case}", False)
            found[case] = self.backend.baselines(case)
        return Report(status=Status.correct, baselines=found)


class JobRun:
    """One job while it runs: its steps, its phases and its results so far."""

    def __init__(self, judge: Judge, job: Job) -> None:
        self.judge = judge
        self.job = job
        self.status = Status.correct
        self.reason = ""
        self.detail = ""
        self.checks: list[CaseCheck] = []
        self.checked: dict[str, CheckedRun] = {}  # case -> what checked mode found
        self.timings: list[CaseTiming] = []
        self.modelled: list[CaseModel] = []
        self.is_coarse = False
        self.activity: tuple[KernelActivity, ...] = ()
        self.activity_problem = ""
        self.forensics: Forensics | None = None
        self.phases_s: dict[str, float] = {}
        self.candidate_step = ""  # the last step in which candidate code could run
        self.candidate_may_run = False  # in the current step

    def run(self) -> None:
        """Runs every stage until one ends the job; raises CandidateFailure."""
        for stage in self._stages():
            if self.status is Status.correct:
                stage()

    def _stages(self) -> Sequence[Callable[[], None]]:
        match self.job.purpose:
            case Purpose.activity:
                return (self._measure_activity,)
            case Purpose.preparation:
                return (self._prepare,)
            case Purpose.checked_mode:
                return (self._sanitize,)
            case Purpose.outputs if self.job.only_set is not None and self.job.checked:
                return (self._check_followed,)
            case Purpose.outputs | Purpose.diagnosis:
                return self._sanitize, self._check
        return self._sanitize, self._check, self._time

    def end(self, status: Status, reason: str, detail: str = "") -> None:
        """Ends the job early; the reason names the step, unless it names the wrong result."""
        self.status, self.detail = status, detail
        named = status is Status.wrong_result or not self.candidate_step
        self.reason = reason if named else f"{reason} ({self.candidate_step})"

    def report(self) -> Report:
        """The results so far; times only if every output is right."""
        correct = self.status is Status.correct
        return Report(
            status=self.status,
            reason=self.reason,
            detail=self.detail,
            checks=tuple(self.checks),
            timings=tuple(self.timings) if correct else (),
            modelled=tuple(self.modelled) if correct else (),
            is_coarse=correct and self.is_coarse,
            phases_s=self.phases_s,
            activity=self.activity,
            activity_problem=self.activity_problem,
            forensics=self.forensics,
            gpu_state=self.judge.backend.gpu_state(),
        )

    def _measure_activity(self) -> None:
        """Measures kernel activity; without a profiler there is none, and nobody is at fault."""
        with self._phase("activity"):
            try:
                self.activity = self.judge.backend.activity(self.job, self._announce)
            except NoActivity as problem:
                self.activity_problem = str(problem)

    def _sanitize(self) -> None:
        """Runs checked mode over every case; the first one with findings ends the job."""
        cases = self.judge.backend.sanitize(self.job, self._announce)
        if cases is None:
            return
        with self._phase("checked"):
            for case in cases:
                self.checked[case.compiled.plan.case] = case.run
                if case.run.findings:
                    self._refuse_sanitized(case)
                    return
                if self.job.purpose is Purpose.checked_mode:
                    self._add_sanitized(case, ok=True)

    def _check_followed(self) -> None:
        """Follows each case in checked mode, and compares its outputs where nothing was found."""
        cases = self.judge.backend.sanitize(self.job, self._announce)
        assert cases is not None, "only an emulator has checked mode"
        for case in cases:
            self.checked[case.compiled.plan.case] = case.run
            if case.run.findings:
                self._add_sanitized(case, ok=False)
            else:
                self._check_case(case.compiled)

    def _prepare(self) -> None:
        for compiled in self.job.cases:
            self._prepare_case(compiled)

    def _prepare_case(self, compiled: CompiledCase) -> None:
        self._announce(f"preparing {shown(compiled)}", False)
        self.judge.backend.prepare(compiled, self.job, self._announce)

    def _check(self) -> None:
        """Compares the outputs of every case in the job's order; the first wrong one ends the
        job.
        """
        with self._phase("check"):
            for compiled in self.job.cases:
                found = self._check_case(compiled)
                if found is not None and not found.ok and self.job.only_set is None:
                    self.end(Status.wrong_result, explain(found))
                    break
        if self.status is Status.wrong_result and not self._is_left_to_another(self.checks[-1]):
            self._examine(compiled, self.checks[-1])

    def _check_case(self, compiled: CompiledCase) -> CaseCheck | None:
        """The comparison of one case, which is added to the checks; None for a small case that the
        reference does not serve: no task file has it.
        """
        try:
            self._prepare_case(compiled)
        except TaskError:
            if compiled.plan.case in self.judge.task.all_cases:
                raise
            return None
        self._announce(f"checking {shown(compiled)}", True)
        found = self.judge.backend.check(compiled, self.job, self._announce)
        self.checks.append(found.model_copy(update={"checked": self.checked.get(found.case)}))
        return found

    def _is_left_to_another(self, wrong: CaseCheck) -> bool:
        """Whether another job says what is wrong, if anybody asks."""
        if self.job.purpose in (Purpose.quick_verdict, Purpose.outputs):
            return True
        return self.job.smaller_first and bool(smaller_versions(self.judge.task, wrong.case))

    def _examine(self, compiled: CompiledCase, check: CaseCheck) -> None:
        """Looks for what is wrong with the last wrong call; the verdict stays as it is."""
        judge = self.judge
        if judge.examiner is None:
            return
        with self._phase("forensics"):
            passed = [*self.job.passed, *(item.case for item in self.checks if item.ok)]
            self.forensics = judge.examiner.examine(
                compiled, self.job, check, passed, self._announce
            )
        judge.healthy &= judge.examiner.healthy

    def _time(self) -> None:
        """Times the candidate; the first wrong output of a timed launch ends the job."""
        backend = self.judge.backend
        with self._phase(backend.timing_phase):
            for case in backend.time(self.job, self._announce):
                if case.timing:
                    self.timings.append(case.timing)
                if case.model:
                    self.modelled.append(case.model)
                self.is_coarse |= case.is_coarse
                self._add_sets(case)
                if case.wrong:
                    self._refuse_timed(case)
                    return

    def _add_sets(self, case: TimedCase) -> None:
        """Adds the comparisons of timed launches to the check of their case."""
        for place, check in enumerate(self.checks):
            if case.sets and check.case == case.compiled.plan.case:
                self.checks[place] = check.model_copy(
                    update={"sets": worst_of_each(check.sets, case.sets)}
                )

    def _refuse_sanitized(self, case: SanitizedCase) -> None:
        self._add_sanitized(case, ok=False)
        findings = case.run.findings
        self.end(Status.fault, findings[0], "\n".join(findings))

    def _add_sanitized(self, case: SanitizedCase, ok: bool) -> None:
        """Adds the check of a case whose outputs are not compared."""
        plan = case.compiled.plan
        self.checks.append(
            CaseCheck(case=plan.case, hidden=plan.hidden, ok=ok, sets=(), checked=case.run)
        )

    def _refuse_timed(self, case: TimedCase) -> None:
        """Ends the job; this call is examined here, because another job may never see it: every
        output was right when it was checked.
        """
        plan = case.compiled.plan
        check = CaseCheck(case=plan.case, hidden=plan.hidden, ok=False, sets=case.wrong)
        self.checks.append(check)
        self.end(Status.wrong_result, f"right when checked, wrong when timed: {explain(check)}")
        self._examine(case.compiled, check)

    def _announce(self, step: str, candidate: bool) -> None:
        """Tells of a step; of changed kernels also the number, because one may end the process."""
        if self.job.only_set is not None:
            step = f"{step}, change {len(self.checks) + 1}"
        if candidate:
            self.candidate_step = step
        self.candidate_may_run = candidate
        self.judge.announce(step, candidate)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Adds the seconds spent inside to the phase `name`."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.phases_s[name] = self.phases_s.get(name, 0.0) + time.monotonic() - start
