"""seams.Executor on this machine: a pool of compilers and one device."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from evoengine.arch import DEFAULT_ARCH, limits_of, limits_of_arch
from evoengine.candidate import Candidate
from evoengine.errors import DeviceError, TaskError
from evoengine.evaluate.build import Build, Builder, Refused
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.records import CaseTiming, Environment, Interval, Status, Verdict
from evoengine.seams import Device, Job, Progress, Report
from evoengine.statistics import geomean, latency_interval, ratio_interval
from evoengine.task import Task


class LocalExecutor:
    """Compiles candidates on this machine's cores and has `device` judge them."""

    def __init__(self, task: Task, task_path: str, pool: CompilePool, device: Device, baselines: Mapping[str, str] | None = None) -> None:
        """`baselines` names the one to time against for each case; without it, the fastest is found at the start."""
        self.task = task
        self.task_path = task_path
        self.pool = pool
        self.device = device
        self.builder = Builder(task, pool)
        self._environment: Environment | None = None
        self._baselines: dict[str, str] = dict(baselines or {})
        self.baseline_times: dict[str, dict[str, float]] = {}
        self.baseline_problems: dict[str, str] = {}

    async def start(self) -> tuple[Environment, dict[str, str]]:
        """Brings up compilers and device, and times every baseline once.

        Raises TaskError where no baseline works, DeviceError and WorkerError from the device.
        """
        versions = {"nvrtc": await self.pool.start()}
        environment = await self._start_both()
        self._environment = environment.model_copy(update={"versions": {**environment.versions, **versions}})
        if not self._baselines:
            await self._find_baselines(environment)
        return self._environment, dict(self._baselines)

    async def _start_both(self) -> Environment:
        """Device and compilers at once; when one fails, the other is not left behind half started."""
        tasks = (asyncio.create_task(self.device.start(self.task, self.task_path)), asyncio.create_task(self.pool.warm()))
        try:
            environment, _ = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        return environment

    async def _find_baselines(self, environment: Environment) -> None:
        report = await self.device.run(Job(cases=(), tier=""), lambda _: None)
        for case, times in report.baselines.items():
            if times.fastest is None:
                raise TaskError(f"no baseline works for case {case} on {environment.device}: {times.problems}")
            self._baselines[case] = times.fastest
            self.baseline_times[case] = times.median_us
            self.baseline_problems |= times.problems

    async def evaluate(self, candidate: Candidate, progress: Progress, fresh: bool = False) -> Verdict:
        """The verdict on `candidate`: whatever is wrong with it is a status."""
        if self._environment is None:
            raise DeviceError("the executor was asked for a verdict before it was started")
        started = time.monotonic()
        try:
            build = await self.builder.build(candidate, limits_of(self._environment), progress)
        except Refused as refused:
            return self._finish(refused.verdict, started, refused.build)
        compiled = time.monotonic()
        job = Job(cases=build.cases, tier=candidate.plan.precision, baselines=self._baselines)
        report = await self.device.run(job, progress, fresh)
        verdict = _verdict_of(report, self.task, candidate.plan.precision)
        return self._finish(verdict, started, build, {"compile": compiled - started, **report.phases_s})

    async def close(self) -> None:
        """Ends every process."""
        await self.builder.close()
        await self.device.close()
        await self.pool.close()

    def _finish(self, verdict: Verdict, started: float, build: Build, phases_s: dict[str, float] | None = None) -> Verdict:
        return verdict.model_copy(
            update={
                "tier": verdict.tier or build.tier,
                "resources": build.resources,
                "target_exceeds": build.target_exceeds,
                "code_digest": build.code_digest,
                "environment": self._environment,
                "phases_s": {**(phases_s or {}), "total": time.monotonic() - started},
            }
        )


class CompileOnly:
    """Compiles candidates for the task's target where there is no device to run them."""

    def __init__(self, task: Task, pool: CompilePool) -> None:
        self._limits = limits_of_arch(task.target.arch if task.target else DEFAULT_ARCH)
        self._builder = Builder(task, pool)

    async def evaluate(self, candidate: Candidate, progress: Progress) -> Verdict:
        """Status `correct` with resources when it compiled, else why it did not."""
        try:
            build = await self._builder.build(candidate, self._limits, progress)
        except Refused as refused:
            return refused.verdict.model_copy(update={"resources": refused.build.resources, "tier": refused.build.tier})
        reason = f"compiled for {self._limits.arch}, not run"
        return Verdict(
            status=Status.correct, reason=reason, tier=build.tier, resources=build.resources, target_exceeds=build.target_exceeds
        )


def _verdict_of(report: Report, task: Task, tier: str) -> Verdict:
    score, latency = score_of(task, report.timings) if report.status is Status.correct else (None, None)
    return Verdict(
        status=report.status,
        reason=report.reason or "correct on every case",
        detail=report.detail,
        tier=tier,
        score=score,
        latency_us=latency,
        checks=report.checks,
        timings=report.timings,
    )


def score_of(task: Task, timings: tuple[CaseTiming, ...]) -> tuple[Interval, Interval]:
    """The objective's ratio to the baseline and its time per call, with their intervals."""
    cold = task.objective.cache == "cold"
    chosen = [timing for timing in timings if timing.case in task.objective.cases]
    score = geomean(ratio_interval(timing, cold) for timing in chosen)
    return score, geomean(latency_interval(timing, cold) for timing in chosen)
