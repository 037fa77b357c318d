"""The executor of this machine: pools of compilers and one device."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from evoengine.candidate.arch import DeviceLimits, limits_of
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import DeviceError, EvoError, TaskError, ToolchainError
from evoengine.evaluate.checked_beside import MOST_EMULATORS, CheckedBeside
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.compile_candidate import (
    CandidateCompiler,
    CompiledCandidate,
    compiler_file_name,
)
from evoengine.evaluate.diagnosed_report import diagnosed
from evoengine.evaluate.fault_in_the_open import told_in_the_open
from evoengine.evaluate.hidden_case import report_without_sizes
from evoengine.evaluate.refused_plan import told_of_plan, with_plan_mended
from evoengine.evaluate.repair.repair_search import RepairSearch
from evoengine.evaluate.repair.repaired_verdict import with_repair, wrong_inputs
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.scoring import race_of, verdict_of
from evoengine.evaluate.stored_baselines import StoredBaselines, as_measured
from evoengine.evaluate.told_fault import CAUSED, WAIT_S, with_fault
from evoengine.protocols import (
    ActivityReport,
    BaselineTimes,
    Device,
    ExecutorStart,
    Job,
    Progress,
    Purpose,
    Report,
    SearchBar,
)
from evoengine.records import AuditReport, Environment, Interval, Race, RaceResult, Status, Verdict
from evoengine.task.schema import Task

# Of a wrong candidate of a search, in which the edit of its parents that makes it wrong is looked
# for: an emulator compiles and launches some fifty such edits in that time.
PARENTS_S = 4.0
TRIAL_FILE_NAME = "kernel.cu"  # in exported files and in prompts
NOT_STARTED = "the executor was asked for a verdict before it was started"
NO_GPU = "no kernel runs on a GPU here: times are modelled"
WITHOUT_NVRTC = (
    "kernels are compiled by clang alone: their registers and spills are unknown, so modelled times"
    " take occupancy from threads and shared memory alone and cannot be compared with those of a"
    " run with NVRTC"
)


class LocalExecutor:
    """Implements protocols.Executor: compiles on this machine's cores and judges on `device`."""

    def __init__(
        self,
        task: Task,
        task_path: str,
        nvrtc: CompilePool,
        device: Device,
        baselines: Mapping[str, str] | None = None,
        clang: CompilePool | None = None,
        stored: StoredBaselines | None = None,
        beside: CheckedBeside | None = None,
        repair_s: float = 0.0,
        likes: Sequence[Candidate] = (),
    ) -> None:
        """`baselines` maps a case to the baseline to time against; without it, `start` finds the
        fastest of each case, by the times that are `stored` or by timing them.

        `clang` compiles for an emulator, which needs no baselines, because it times nothing, and
        works without NVRTC too. `beside` follows the candidates of a GPU in checked mode. In a
        wrong kernel, `repair_s` is how long the one change is looked for that makes it right; what
        kernels of `likes`, which are right, have in its place comes first.
        """
        self.task = task
        self.task_path = task_path
        self.nvrtc = nvrtc
        self.device = device
        self.clang = clang
        self.stored = stored
        self.beside = beside
        self.repair_s = repair_s
        self.likes = likes
        self.compiler = CandidateCompiler(task, nvrtc, clang)
        self._numbers = itertools.count()  # of evaluations, in the order in which they were asked
        self._environment: Environment | None = None
        self._baselines: dict[str, str] = dict(baselines or {})

    async def start(self) -> ExecutorStart:
        """Starts compilers and device, and times every baseline, unless their times are stored.

        Raises TaskError if no baseline works, ToolchainError, DeviceError and WorkerError.
        """
        versions, notices = await self._start_compilers()
        found = await self._start_device_and_warm_compilers()
        environment = found.model_copy(update={"versions": {**found.versions, **versions}})
        if self.beside is not None:
            notices += await self.beside.start(environment)
        times: dict[str, BaselineTimes] = {}
        if not self._baselines and not environment.is_modelled:
            times, more = await self._baseline_times(environment)
            notices += more
        self._environment = environment
        problems = [item.problems for item in times.values()]
        return ExecutorStart(
            environment=environment,
            baselines=dict(self._baselines),
            baseline_us={case: item.median_us for case, item in times.items()},
            baseline_problems=dict(pair for item in problems for pair in item.items()),
            notices=notices,
        )

    async def _start_compilers(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """The compilers' versions, and notices for the user: an emulator works without NVRTC."""
        if self.clang is None:
            return {"nvrtc": await self.nvrtc.start()}, ()
        try:
            versions = {"clang": await self.clang.start()}
        except ToolchainError as error:
            raise DeviceError(f"the emulator has no compiler: {error}") from None
        try:
            versions["nvrtc"] = await self.nvrtc.start()
        except ToolchainError as error:
            self.compiler.nvrtc = None
            return versions, (f"{WITHOUT_NVRTC}. {error}",)
        return versions, ()

    async def _start_device_and_warm_compilers(self) -> Environment:
        """Starts the device while the compilers warm up; if one fails, the others are stopped."""
        starting = asyncio.create_task(self.device.start(self.task, self.task_path))
        pools = [pool for pool in (self.compiler.nvrtc, self.clang) if pool is not None]
        tasks: list[asyncio.Task[Any]] = [
            starting,
            *(asyncio.create_task(pool.warm()) for pool in pools),
        ]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        return starting.result()

    async def _baseline_times(
        self, environment: Environment
    ) -> tuple[dict[str, BaselineTimes], tuple[str, ...]]:
        """The times of every baseline by case, and notices; keeps the name of the fastest one of
        each case.
        """
        record = self.stored.find(environment) if self.stored else None
        if record is not None:
            times = record.cases
        else:
            times = (await self.device.run(Job(cases=(), tier=""), lambda _: None)).baselines
        for case, found in times.items():
            if found.fastest is None:
                raise TaskError(
                    f"no baseline works for case {case} on {environment.device}: {found.problems}"
                )
            self._baselines[case] = found.fastest
        if record is not None:
            return times, (as_measured(record),)
        return times, self.stored.keep(environment, times) if self.stored else ()

    async def audit(self, progress: Progress) -> AuditReport:
        """The audit of the task on the device, which must be started; raises EvoError."""
        return await audit_on(self.device, progress)

    async def evaluate(
        self,
        candidate: Candidate,
        progress: Progress,
        verify: bool = False,
        search: SearchBar | None = None,
        sittings: int = 1,
    ) -> Verdict:
        """The verdict on `candidate`; whatever is wrong with it becomes a status.

        For a search, only the cases of the objective are timed. Checked mode beside a GPU follows
        it meanwhile; only a verdict that may give it a place, or that no search asked for, waits.
        """
        if self._environment is None:
            raise DeviceError(NOT_STARTED)
        started, number = time.monotonic(), next(self._numbers)
        limits = limits_of(self._environment)
        compiled = await self.compiler.compile(candidate, limits, progress)
        if compiled.refusal is not None:
            refusal = told_of_plan(compiled.refusal, candidate, self.task, limits)
            if search is None and refusal.forensics is not None:
                changes = RepairSearch(Workbench(self.compiler, self.device), limits)
                refusal = await with_plan_mended(
                    refusal, candidate, changes, self.repair_s, progress
                )
            return self._finish(
                _with_user_file_name(refusal, candidate), started, compiled, refusal.phases_s
            )
        phases_s = {"compile": time.monotonic() - started}
        # many compile at once; the device takes them as they were asked for, as they settle
        job = self._judging_job(compiled, number, verify, search, sittings)
        if self.beside is not None:
            self.beside.begin(candidate)
        report = report_without_sizes(await self.device.run(job, progress, verify))
        report, problem = await self._with_findings(
            report, candidate, progress, counts=verify or search is None
        )
        of_case = job, self.task, self.device
        compile_small = partial(self.compiler.compile_small, candidate, limits=limits)
        report = await diagnosed(report, *of_case, compile_small, progress)
        if self._environment.is_modelled:
            report = await told_in_the_open(report, *of_case, compile_small, progress)
        report = await self._with_fault(report, candidate, progress)
        verdict = verdict_of(report, self.task, candidate.plan.precision)
        verdict = verdict.model_copy(update={"checked_problem": problem})
        parents = search.parents if search else ()
        verdict = await self._repaired(verdict, candidate, limits, progress, parents)
        verdict = _with_user_file_name(verdict, candidate)
        return self._finish(
            verdict, started, compiled, {**phases_s, **report.phases_s, **verdict.phases_s}
        )

    def _judging_job(
        self,
        compiled: CompiledCandidate,
        number: int,
        verify: bool,
        search: SearchBar | None,
        sittings: int,
    ) -> Job:
        assert self._environment is not None
        # where times are modelled one process does everything, and a launch takes seconds
        is_modelled = self._environment.is_modelled
        is_quick = not verify and not is_modelled
        return Job(
            cases=compiled.cases,
            tier=compiled.tier,
            purpose=Purpose.quick_verdict if is_quick else Purpose.verdict,
            smaller_first=is_modelled and not verify,
            baselines=self._scored_baselines if search else self._baselines,
            limit=search.score if search else None,
            scored_only=search is not None,
            sittings=sittings,
            candidate=compiled.code_digest,
            number=number,
            checked=not verify,
        )

    async def _with_findings(
        self, report: Report, candidate: Candidate, progress: Progress, counts: bool
    ) -> tuple[Report, str]:
        """`report` with what checked mode found beside the GPU, and why it did not follow all."""
        if self.beside is None:
            return report, ""
        if report.status in CAUSED:
            return report, ""  # it is followed while the device looks for what is wrong
        if report.status is not Status.correct or report.is_coarse:
            self.beside.drop(candidate)
            return report, ""
        if not counts:
            return report, ""
        progress("following every access on the emulator")
        since = time.monotonic()
        found = await self.beside.result(candidate)
        waited = {**report.phases_s, "checked": time.monotonic() - since}
        return found.added_to(report.model_copy(update={"phases_s": waited})), found.problem

    async def _with_fault(self, report: Report, candidate: Candidate, progress: Progress) -> Report:
        """`report` on a candidate that failed on a GPU, with the fault that the emulator finds."""
        if self.beside is None or report.status not in CAUSED:
            return report
        progress("following every access on the emulator")
        since = time.monotonic()
        found = with_fault(report, await self.beside.fault(candidate, WAIT_S))
        waited = {**report.phases_s, "checked": time.monotonic() - since}
        return found.model_copy(update={"phases_s": waited})

    async def _repaired(
        self,
        verdict: Verdict,
        candidate: Candidate,
        limits: DeviceLimits,
        progress: Progress,
        parents: Sequence[Candidate],
    ) -> Verdict:
        """`verdict` with the change that makes a wrong candidate right, if it is looked for. In a
        search that is one of its differences from its parents, where an emulator can tell.
        """
        if wrong_inputs(verdict) is None:
            return verdict
        is_emulated = self.clang is not None or self.beside is not None
        of_parents = self.repair_s <= 0 and bool(parents) and is_emulated
        seconds = PARENTS_S if of_parents else self.repair_s
        if seconds <= 0:
            return verdict
        likes = parents if of_parents else self.likes
        # a run has other candidates to follow, and the edits of one are few
        most = 1 if of_parents else MOST_EMULATORS
        async with nullcontext(()) if self.beside is None else self.beside.lent(most) as emulators:
            bench = Workbench(self.compiler, self.device)
            search = RepairSearch(bench, limits, emulators, likes=likes, only_likes=of_parents)
            return await with_repair(verdict, candidate, search, seconds, progress)

    async def race(
        self, newcomer: Candidate, holder: Candidate, score: Interval, progress: Progress
    ) -> Race:
        """`newcomer` against `holder`, which holds its place by `score`; raises EvoError."""
        if self._environment is None:
            raise DeviceError(NOT_STARTED.replace("verdict", "race"))
        if self._environment.is_modelled:
            raise DeviceError("modelled times are not raced")
        jobs = []
        for candidate in (newcomer, holder):
            job = await self._racing_job(candidate, progress)
            if isinstance(job, Verdict):  # it had compiled before
                result = RaceResult.lost if candidate is newcomer else RaceResult.void
                return Race(result=result, reason=job.reason)
            jobs.append(job)
        return race_of(await self.device.race(jobs[0], jobs[1], progress), score)

    async def _racing_job(self, candidate: Candidate, progress: Progress) -> Job | Verdict:
        """The objective's cases of a candidate, or why it does not compile."""
        assert self._environment is not None
        compiled = await self.compiler.compile(candidate, limits_of(self._environment), progress)
        if compiled.refusal is not None:
            return compiled.refusal
        scored = self._scored_baselines
        return Job(
            cases=tuple(case for case in compiled.cases if case.plan.case in scored),
            tier=candidate.plan.precision,
            baselines=scored,
            candidate=compiled.code_digest,
        )

    @property
    def _scored_baselines(self) -> dict[str, str]:
        """The baselines of the cases that the score is made of."""
        wanted = self.task.objective.cases
        return {case: name for case, name in self._baselines.items() if case in wanted}

    async def activity(self, candidate: Candidate, progress: Progress) -> ActivityReport:
        """The kernel activity of `candidate` on every case that is timed."""
        if self._environment is None:
            raise DeviceError(NOT_STARTED)
        if self._environment.is_modelled:
            return ActivityReport(problem=NO_GPU)
        try:
            return await self._activity(candidate, limits_of(self._environment), progress)
        except EvoError as error:  # a profiler that hangs or dies ends no run
            return ActivityReport(problem=str(error))

    async def _activity(
        self, candidate: Candidate, limits: DeviceLimits, progress: Progress
    ) -> ActivityReport:
        compiled = await self.compiler.compile(candidate, limits, progress)
        if compiled.refusal is not None:
            return ActivityReport(problem=compiled.refusal.reason)
        job = Job(
            cases=tuple(item for item in compiled.cases if item.plan.case in self._baselines),
            tier=candidate.plan.precision,
            baselines=self._baselines,
            candidate=compiled.code_digest,
            purpose=Purpose.activity,
        )
        report = await self.device.run(job, progress)
        if report.status is not Status.correct:
            return ActivityReport(problem=f"{report.status.value}: {report.reason}")
        return ActivityReport(cases=report.activity, problem=report.activity_problem)

    async def close(self) -> None:
        """Ends every process."""
        if self.beside is not None:
            await self.beside.close()
        await self.compiler.close()
        await self.device.close()
        await self.nvrtc.close()
        if self.clang is not None:
            await self.clang.close()

    def _finish(
        self,
        verdict: Verdict,
        started: float,
        compiled: CompiledCandidate,
        phases_s: dict[str, float] | None = None,
    ) -> Verdict:
        return verdict.model_copy(
            update={
                "tier": verdict.tier or compiled.tier,
                "resources": compiled.resources,
                "target_exceeds": compiled.target_exceeds,
                "code_digest": compiled.code_digest,
                "environment": self._environment,
                "phases_s": {**(phases_s or {}), "total": time.monotonic() - started},
            }
        )


async def audit_on(device: Device, progress: Progress) -> AuditReport:
    """The audit of the task that `device` was started for; raises EvoError."""
    report = await device.run(Job(cases=(), tier="", purpose=Purpose.audit), progress)
    assert report.audit is not None
    return report.audit


def _with_user_file_name(verdict: Verdict, candidate: Candidate) -> Verdict:
    """`verdict` with the name of the user's file instead of the one that compilers see.

    The files of all trials have the same name, because identical candidates share a verdict.
    """
    compiled, given = compiler_file_name(candidate), Path(candidate.header.name).name
    name = TRIAL_FILE_NAME if re.fullmatch(r"trial \d+", given) else given
    if compiled == name:
        return verdict
    mention = re.compile(rf"(?<![\w.-]){re.escape(compiled)}(?!\w)")

    def named(text: str) -> str:
        return mention.sub(lambda _: name, text)

    return verdict.model_copy(
        update={
            "reason": named(verdict.reason),
            "detail": named(verdict.detail),
            "checked_problem": named(verdict.checked_problem),
            "forensics": verdict.forensics and verdict.forensics.reworded(named),
        }
    )
