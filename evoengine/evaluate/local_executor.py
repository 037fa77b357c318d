"""protocols.Executor on this machine: a pool of compilers and one device."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evoengine.candidate.arch import limits_of
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import DeviceError, TaskError, ToolchainError
from evoengine.evaluate.compile.pool import CompilePool
from evoengine.evaluate.compile_candidate import (
    CandidateCompiler,
    CandidateRefused,
    CompiledCandidate,
    compiled_as,
)
from evoengine.evaluate.scoring import verdict_of
from evoengine.protocols import BaselineTimes, Device, ExecutorStart, Job, Progress
from evoengine.records import Environment, Verdict
from evoengine.task.schema import Task

FILE_OF_A_TRIAL = "kernel.cu"  # as it is exported, and as a model is told


class LocalExecutor:
    """Compiles candidates on this machine's cores and has `device` judge them."""

    def __init__(
        self,
        task: Task,
        task_path: str,
        pool: CompilePool,
        device: Device,
        baselines: Mapping[str, str] | None = None,
        front: CompilePool | None = None,
    ) -> None:
        """`baselines` names the one to time against for each case; without it, the fastest is found
        at the start.

        `front` compiles for an emulator, which times nothing and so needs no baselines, and can do
        without `pool`.
        """
        self.task = task
        self.task_path = task_path
        self.pool = pool
        self.device = device
        self.front = front
        self.builder = CandidateCompiler(task, pool, front)
        self._environment: Environment | None = None
        self._baselines: dict[str, str] = dict(baselines or {})

    async def start(self) -> ExecutorStart:
        """Brings up compilers and device, and times every baseline once.

        Raises TaskError where no baseline works, ToolchainError, DeviceError and WorkerError.
        """
        versions, notices = await self._start_compilers()
        found = await self._start_both()
        environment = found.model_copy(update={"versions": {**found.versions, **versions}})
        times: dict[str, BaselineTimes] = {}
        if not self._baselines and not environment.is_modelled:
            times = await self._time_baselines(environment)
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
        """Their versions, and what the user should know. An emulator can do without NVRTC."""
        if self.front is None:
            return {"nvrtc": await self.pool.start()}, ()
        try:
            versions = {"clang": await self.front.start()}
        except ToolchainError as error:
            raise DeviceError(f"the emulator has no compiler: {error}") from None
        try:
            versions["nvrtc"] = await self.pool.start()
        except ToolchainError as error:
            self.builder.pool = None
            notice = (
                "kernels are compiled by clang alone: their registers and spills are unknown, so"
                " modelled times take occupancy from threads and shared memory alone and cannot be"
                f" compared with those of a run with NVRTC. {error}"
            )
            return versions, (notice,)
        return versions, ()

    async def _start_both(self) -> Environment:
        """Device and compilers at once; when one fails, the other is not left behind half
        started.
        """
        starting = asyncio.create_task(self.device.start(self.task, self.task_path))
        pools = [pool for pool in (self.builder.pool, self.front) if pool is not None]
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

    async def _time_baselines(self, environment: Environment) -> dict[str, BaselineTimes]:
        """The times of every baseline by case; keeps the fastest of each."""
        report = await self.device.run(Job(cases=(), tier=""), lambda _: None)
        for case, times in report.baselines.items():
            if times.fastest is None:
                raise TaskError(
                    f"no baseline works for case {case} on {environment.device}: {times.problems}"
                )
            self._baselines[case] = times.fastest
        return report.baselines

    async def evaluate(
        self, candidate: Candidate, progress: Progress, verify: bool = False
    ) -> Verdict:
        """The verdict on `candidate`: whatever is wrong with it is a status."""
        if self._environment is None:
            raise DeviceError("the executor was asked for a verdict before it was started")
        started = time.monotonic()
        try:
            build = await self.builder.build(candidate, limits_of(self._environment), progress)
        except CandidateRefused as refused:
            return self._finish(_named(refused.verdict, candidate), started, refused.build)
        compiled = time.monotonic()
        job = Job(
            cases=build.cases,
            tier=candidate.plan.precision,
            baselines=self._baselines,
            checked=not verify,
        )
        report = await self.device.run(job, progress, verify)
        verdict = verdict_of(report, self.task, candidate.plan.precision)
        return self._finish(
            _named(verdict, candidate),
            started,
            build,
            {"compile": compiled - started, **report.phases_s},
        )

    async def close(self) -> None:
        """Ends every process."""
        await self.builder.close()
        await self.device.close()
        await self.pool.close()
        if self.front is not None:
            await self.front.close()

    def _finish(
        self,
        verdict: Verdict,
        started: float,
        build: CompiledCandidate,
        phases_s: dict[str, float] | None = None,
    ) -> Verdict:
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


def _named(verdict: Verdict, candidate: Candidate) -> Verdict:
    """`verdict` in words that name the user's file, or that of a trial: the same for every trial,
    since identical ones share a verdict.
    """
    was, given = compiled_as(candidate), Path(candidate.header.name).name
    name = FILE_OF_A_TRIAL if re.fullmatch(r"trial \d+", given) else given
    if was == name:
        return verdict
    told = re.compile(rf"(?<![\w.-]){re.escape(was)}(?!\w)")
    return verdict.model_copy(
        update={
            "reason": told.sub(lambda _: name, verdict.reason),
            "detail": told.sub(lambda _: name, verdict.detail),
        }
    )
