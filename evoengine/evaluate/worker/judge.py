"""One job from beginning to end: check every case, then time the ones that are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable

from evoengine.evaluate.worker.answers import Answers
from evoengine.evaluate.worker.check import Cheated, check_case
from evoengine.evaluate.worker.contenders import time_baselines
from evoengine.evaluate.worker.launch import CUDA_ERRORS, Crashed, LaunchRefused, translate
from evoengine.evaluate.worker.race import Race
from evoengine.evaluate.worker.timing import Flusher
from evoengine.records import CaseCheck, CaseTiming, InputSetCheck, Status
from evoengine.seams import CompiledCase, Job, Report
from evoengine.task import Task

Doing = Callable[[str, bool], None]  # what happens next, and whether candidate code may run


class Judge:
    """Judges jobs of one task on one device."""

    def __init__(self, task: Task, answers: Answers, doing: Doing) -> None:
        self.task = task
        self.answers = answers
        self.doing = doing
        self.flusher = Flusher(answers.device)
        self.healthy = True

    def run(self, job: Job) -> Report:
        """The report on `job`; sets `healthy` to false when this process must be replaced."""
        if not job.cases:
            return self._baselines()
        trial = _Trial(self, job)
        try:
            trial.check()
            if trial.status is Status.correct:
                trial.time()
        except (Crashed, LaunchRefused, Cheated) as finding:
            self._end(trial, finding)
        except CUDA_ERRORS as error:  # beside a launch: buffers that leave no memory for the comparison
            if not trial.candidate:
                raise
            self._end(trial, translate(error))
        return trial.report()

    def _end(self, trial: _Trial, finding: Crashed | LaunchRefused | Cheated) -> None:
        statuses = {Crashed: Status.crash, LaunchRefused: Status.launch_error, Cheated: Status.cheat}
        trial.end(statuses[type(finding)], str(finding))
        self.healthy = isinstance(finding, LaunchRefused)  # where else a cheat has written, nobody knows

    def _baselines(self) -> Report:
        found = {}
        for case in self.task.cases:
            self.doing(f"timing baselines on {case}", False)
            found[case] = time_baselines(self.task, self.answers, case, self.flusher)
        return Report(status=Status.correct, baselines=found)


class _Trial:
    """One job under way."""

    def __init__(self, judge: Judge, job: Job) -> None:
        self.judge = judge
        self.job = job
        self.status = Status.correct
        self.reason = ""
        self.checks: list[CaseCheck] = []
        self.timings: list[CaseTiming] = []
        self.phases_s: dict[str, float] = {}
        self.now = ""  # what is done with the candidate
        self.candidate = False  # whether this is its time

    def check(self) -> None:
        """Cases in the job's order; the first wrong one ends the job."""
        start = time.monotonic()
        for compiled in self.job.cases:
            self._prepare(compiled)
            self._enter("checking", compiled)
            found = check_case(self.judge.task, self.judge.answers, compiled, self.job.tier)
            self.checks.append(found)
            if not found.ok:
                self.end(Status.wrong_result, explain(found))
                break
        self.phases_s["check"] = time.monotonic() - start

    def time(self) -> None:
        """Paired timing of the cases that have a baseline in the job, and a check of what the timed launches wrote."""
        start = time.monotonic()
        for compiled in self.job.cases:
            baseline = self.job.baselines.get(compiled.plan.case)
            if baseline is None or self.status is not Status.correct:
                continue
            self._leave(f"preparing to time {_shown(compiled)}")
            race = Race(self.judge.task, self.judge.answers, self.judge.flusher, compiled, baseline)
            self._enter("timing", compiled)
            self.timings.append(race.run())
            wrong = [item for item in race.verify(self.job.tier) if not item.ok]
            if wrong:
                self._refuse_timed(compiled, wrong)
        self.phases_s["timing"] = time.monotonic() - start

    def end(self, status: Status, reason: str) -> None:
        """Ends the job early; what happened is said together with where."""
        self.status = status
        self.reason = reason if status is Status.wrong_result or not self.now else f"{reason} ({self.now})"

    def report(self) -> Report:
        timings = tuple(self.timings) if self.status is Status.correct else ()
        return Report(status=self.status, reason=self.reason, checks=tuple(self.checks), timings=timings, phases_s=self.phases_s)

    def _prepare(self, compiled: CompiledCase) -> None:
        """Computes the answers first: that takes our time, not the candidate's."""
        case = compiled.plan.case
        self._leave(f"preparing {_shown(compiled)}")
        for distribution in self.judge.task.distributions:
            for seed in self.judge.task.seeds:
                self.judge.answers.get(case, distribution, seed)

    def _enter(self, step: str, compiled: CompiledCase) -> None:
        self.now = f"{step} {_shown(compiled)}"
        self.candidate = True
        self.judge.doing(self.now, True)

    def _leave(self, step: str) -> None:
        self.candidate = False
        self.judge.doing(step, False)

    def _refuse_timed(self, compiled: CompiledCase, wrong: list[InputSetCheck]) -> None:
        check = CaseCheck(case=compiled.plan.case, hidden=compiled.plan.hidden, ok=False, sets=tuple(wrong))
        self.checks.append(check)
        self.end(Status.wrong_result, f"right when checked, wrong when timed: {explain(check)}")


def _shown(compiled: CompiledCase) -> str:
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
        f"{where}: {failing} of {len(check.sets)} input sets fail; {worst.distribution} seed {worst.seed}: "
        f"max abs error {worst.max_abs:.3g} (allowed {worst.limit_abs:.3g}), "
        f"relative RMSE {worst.rel_rmse:.3g} (allowed {worst.limit_rel_rmse:.3g}), "
        f"{worst.failing_share:.2%} of elements fail{nan}{index}"
    )
