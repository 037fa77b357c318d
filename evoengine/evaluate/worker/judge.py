"""One job from beginning to end: what a device screens for, every case, then times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evoengine.evaluate.worker.backend import Backend
from evoengine.evaluate.worker.candidate_failures import CandidateFailure
from evoengine.evaluate.worker.check import check_case
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.protocols import CompiledCase, Job, Report
from evoengine.records import CaseCheck, CaseModel, CaseTiming, CheckedRun, Status
from evoengine.task.schema import Task

Doing = Callable[[str, bool], None]  # what happens next, and whether candidate code may run


class Judge:
    """Judges jobs of one task on one device."""

    def __init__(
        self, task: Task, expected_outputs: ExpectedOutputs, backend: Backend, doing: Doing
    ) -> None:
        self.task = task
        self.expected_outputs = expected_outputs
        self.backend = backend
        self.doing = doing
        self.healthy = True

    def run(self, job: Job) -> Report:
        """The report on `job`; sets `healthy` to false when this process must be replaced."""
        if not job.cases:
            return self._baselines()
        trial = JobRun(self, job)
        try:
            self.backend.sanitize(trial)
            trial.check()
            if trial.status is Status.correct:
                self.backend.time(trial)
        except CandidateFailure as finding:
            self._end(trial, finding)
        except (
            self.backend.errors
        ) as error:  # beside a launch: buffers that leave no memory for the comparison
            if not trial.candidate:
                raise
            self._end(trial, self.backend.finding(error))
        return trial.report()

    def _end(self, trial: JobRun, finding: CandidateFailure) -> None:
        trial.end(finding.status, str(finding), finding.detail)
        self.healthy = finding.healthy

    def _baselines(self) -> Report:
        found = {}
        for case in self.task.cases:
            self.doing(f"timing baselines on {case}", False)
            found[case] = self.backend.baselines(case)
        return Report(status=Status.correct, baselines=found)


class JobRun:
    """One job under way."""

    def __init__(self, judge: Judge, job: Job) -> None:
        self.judge = judge
        self.job = job
        self.status = Status.correct
        self.reason = ""
        self.detail = ""
        self.checks: list[CaseCheck] = []
        self.checked: dict[str, CheckedRun] = {}  # by case: what checked mode found
        self.timings: list[CaseTiming] = []
        self.modelled: list[CaseModel] = []
        self.phases_s: dict[str, float] = {}
        self.now = ""  # what is done with the candidate
        self.candidate = False  # whether this is its time

    def check(self) -> None:
        """Cases in the job's order; the first wrong one ends the job."""
        with self.phase("check"):
            for compiled in self.job.cases:
                self._prepare(compiled)
                self.enter("checking", compiled)
                found = check_case(
                    self.judge.task,
                    self.judge.expected_outputs,
                    self.judge.backend,
                    compiled,
                    self.job.tier,
                )
                self.checks.append(
                    found.model_copy(update={"checked": self.checked.get(found.case)})
                )
                if not found.ok:
                    self.end(Status.wrong_result, explain(found))
                    break

    def end(self, status: Status, reason: str, detail: str = "") -> None:
        """Ends the job early; what happened is said together with where."""
        self.status, self.detail = status, detail
        self.reason = (
            reason if status is Status.wrong_result or not self.now else f"{reason} ({self.now})"
        )

    def report(self) -> Report:
        """What was found, with times only where everything is right."""
        correct = self.status is Status.correct
        return Report(
            status=self.status,
            reason=self.reason,
            detail=self.detail,
            checks=tuple(self.checks),
            timings=tuple(self.timings) if correct else (),
            modelled=tuple(self.modelled) if correct else (),
            phases_s=self.phases_s,
        )

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time that is spent inside to the phase of that name."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.phases_s[name] = self.phases_s.get(name, 0.0) + time.monotonic() - start

    def enter(self, step: str, compiled: CompiledCase) -> None:
        """From now on the candidate's code may run, and the time is its own."""
        self.now = f"{step} {shown(compiled)}"
        self.candidate = True
        self.judge.doing(self.now, True)

    def leave(self, step: str) -> None:
        """From now on the time is ours."""
        self.candidate = False
        self.judge.doing(step, False)

    def _prepare(self, compiled: CompiledCase) -> None:
        """Computes the answers first: that takes our time, not the candidate's."""
        case = compiled.plan.case
        for distribution, seed in self.judge.backend.input_sets:
            self.leave(f"preparing {shown(compiled)}")
            self.judge.expected_outputs.get(case, distribution, seed)


def shown(compiled: CompiledCase) -> str:
    """A case as a generator may see it."""
    return "a hidden case" if compiled.plan.hidden else compiled.plan.case


def explain(check: CaseCheck) -> str:
    """One line on what is wrong with a case."""
    worst = check.worst
    where = "a hidden case" if check.hidden else f"case {check.case}"
    failing = sum(not item.ok for item in check.sets)
    nan = f", {worst.nan_count} NaN" if worst.nan_count else ""
    index = "" if check.hidden else f", worst at {worst.worst_output}{list(worst.worst_index)}"
    return (
        f"{where}: {failing} of {len(check.sets)} input sets fail; {worst.distribution} seed"
        f" {worst.seed}: max abs error {worst.max_abs:.3g} (allowed {worst.limit_abs:.3g}),"
        f" relative RMSE {worst.rel_rmse:.3g} (allowed {worst.limit_rel_rmse:.3g}),"
        f" {worst.failing_share:.2%} of elements fail{nan}{index}"
    )
