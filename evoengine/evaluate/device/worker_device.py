"""A device behind two worker processes: one judges, and a spare one stands by.

The spare takes over if the other was killed or broke its context, and if a candidate must be
judged by a process that has run no other candidate.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evoengine.errors import DeviceError, EvoError, WorkerError
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.step_failures import (
    KILLED,
    function_ended_process,
    function_too_slow,
    killed_from_outside,
    killed_twice,
    timed_out,
)
from evoengine.evaluate.device.turn import Turn, rank_of
from evoengine.evaluate.device.worker_process import StepTimeout, WorkerDied, WorkerProcess
from evoengine.evaluate.device.worker_protocol import Done, Ready, Run, Start
from evoengine.protocols import Job, Progress, RaceReport, Report
from evoengine.records import Environment, Status
from evoengine.task.schema import Limits, Task

DETAIL_BYTES = 4096
REASON_CHARACTERS = 1000  # one line; it may quote an instruction as long as its file
START_S = 600.0
EMULATED_TIMES = 16  # of the time that one of many changed kernels may take on a GPU
PROFILER_START_S = 60.0  # CUPTI's first measurement in a process takes up to 5 s on a free machine


def emulator_device(
    target: str,
    checks: Sequence[str],
    cache_dir: Path,
    threads: int | None = None,
    memory_bytes: int = 0,
) -> WorkerDevice:
    """The emulator of a target's GPU on `threads` cores of this machine (None: all that this
    process may use).

    `checks` names the checks of checked mode. References are cached in `cache_dir`, so that a spare
    worker need not compute them again. With `memory_bytes` it is one beside a GPU: its workers get
    no more memory, the lowest priority, and no GPU.
    """
    cores = threads or len(os.sched_getaffinity(0))
    return WorkerDevice(
        ForkServer(
            "evoengine.evaluate.worker.emulated_worker",
            [target, str(cores), ",".join(checks), str(cache_dir), str(memory_bytes)],
        ),
        _emulator_limits,
    )


@dataclass(frozen=True)
class TimeLimits:
    """The limits of one step of a candidate, and of all its steps together."""

    step_s: float
    total_s: float


def gpu_limits(limits: Limits) -> TimeLimits:
    """Those of a candidate on a GPU."""
    return TimeLimits(limits.launch_s, limits.evaluate_s)


def profiling_limits(limits: Limits) -> TimeLimits:
    """Those of a candidate on a GPU under a profiler, whose start is within the first step."""
    allowed = gpu_limits(limits)
    return TimeLimits(allowed.step_s + PROFILER_START_S, allowed.total_s + PROFILER_START_S)


def _emulator_limits(limits: Limits) -> TimeLimits:
    return TimeLimits(limits.emulator_launch_s, limits.emulator_evaluate_s)


def with_output(report: Report, log: str) -> Report:
    """`report` with what the candidate printed, if it failed; both cut to what is stored."""
    words = report.detail[:DETAIL_BYTES]
    if report.status is not Status.correct and log.strip():
        # findings come before the candidate's output
        said = "\n".join(filter(None, (report.detail, log)))
        words = said[:DETAIL_BYTES] if report.detail else said[-DETAIL_BYTES:]
    return report.model_copy(update={"reason": report.reason[:REASON_CHARACTERS], "detail": words})


class _Killed(WorkerError):  # noqa: N818 - a finding, not a fault of ours
    """Another process, perhaps the system, killed the worker while a candidate's code ran."""


class WorkerDevice:
    """Implements protocols.Device with workers that are forked from `fork_server`; the messages
    are those of worker_protocol.py.
    """

    def __init__(
        self, fork_server: ForkServer, limits_of_kind: Callable[[Limits], TimeLimits] = gpu_limits
    ) -> None:
        """`limits_of_kind` picks the time limits of this kind of device from the task's limits."""
        self._fork_server = fork_server
        self._limits_of_kind = limits_of_kind
        self._task: Task | None = None
        self._task_path = ""
        self._worker: WorkerProcess | None = None
        self._environment: Environment | None = None
        self._spare: asyncio.Task[tuple[WorkerProcess, Environment]] | None = None
        self._killed_twice = False  # whether the last candidate's process was
        self._turn = Turn()

    async def start(self, task: Task, task_path: str) -> Environment:
        """Starts the judging process; raises DeviceError, TaskError or WorkerError."""
        self._task, self._task_path = task, task_path
        self._worker, self._environment = await self._start_process()
        return self._environment

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        """Runs one job at a time; a broken process is replaced before the next one.

        A verification goes before the first verdicts that wait: trials settle in order, and the one
        that it belongs to is mostly the next.
        """
        async with self._turn.taken(rank_of(job, verify), job.number):
            if self._task is None:
                raise WorkerError("the device was asked to judge before it was started")
            if self._worker is not None and verify and self._worker.jobs:
                progress("changing to a new process")
                await self._replace_worker()
            if self._worker is None:
                await self._replace_worker()
            if self._spare is None:
                self._spare = asyncio.create_task(self._start_process())
            try:
                return await self._judge_again_if_killed(job, progress)
            except BaseException:
                await (
                    self._kill_worker()
                )  # a process in the middle of a job cannot take the next one
                raise

    async def race(self, newcomer: Job, holder: Job, progress: Progress) -> RaceReport:
        """Raises DeviceError: one process judges here, and its times are modelled."""
        raise DeviceError("this device does not race candidates: its times are modelled")

    async def close(self) -> None:
        """Kills every process."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.cancel()
            await asyncio.wait([spare])
            if not spare.cancelled() and spare.exception() is None:
                await spare.result()[0].kill()
        await self._kill_worker()
        await self._fork_server.close()

    async def _judge_again_if_killed(self, job: Job, progress: Progress) -> Report:
        """Blames the candidate when its process is killed twice, and the machine when that happens
        to two candidates in a row.
        """
        try:
            report = await self._judge(job, progress)
        except _Killed:
            progress("its process was killed; trying once more")
            await self._replace_worker()
            try:
                report = await self._judge(job, progress)
            except _Killed:
                if self._killed_twice:
                    raise
                self._killed_twice = True
                return killed_twice()
        self._killed_twice = False
        return report

    async def _judge(self, job: Job, progress: Progress) -> Report:
        assert self._task is not None and self._worker is not None
        worker, allowed, function_s = (
            self._worker,
            self._limits_of_kind(self._task.limits),
            self._task.limits.reference_s,
        )
        worker.jobs += bool(job.cases)
        step_s = allowed.step_s
        if job.launch_s is not None:  # the first launch of a code waits for its compilation
            step_s = min(step_s, EMULATED_TIMES * job.launch_s)
        try:
            answer = await worker.ask(
                lambda number: Run(id=number, job=job),
                progress,
                step_s,
                allowed.total_s,
                function_s,
            )
        except StepTimeout as error:
            await self._kill_worker()
            if error.step.function:
                raise function_too_slow(error, self._task_path) from error
            if not error.step.candidate:
                raise WorkerError(f"the device worker is stuck: {error}") from error
            return timed_out(error)
        except WorkerDied as error:
            await self._kill_worker()
            if error.how == KILLED:
                kind = _Killed if error.step.candidate else WorkerError
                raise kind(killed_from_outside(error)) from error
            if error.step.function:
                raise function_ended_process(error) from error
            if not error.step.candidate:
                raise WorkerError(f"the device worker died: {error}: {error.log[-500:]}") from error
            return Report(status=Status.crash, reason=str(error), detail=error.log[-DETAIL_BYTES:])
        assert isinstance(answer, Done)
        report = with_output(answer.report, worker.log)
        if not answer.healthy:
            await self._kill_worker()
        return report

    async def _replace_worker(self) -> None:
        await self._kill_worker()
        spare, self._spare = self._spare, None
        try:
            self._worker, self._environment = await (spare or self._start_process())
        except EvoError:
            if spare is None:
                raise
            # The spare may have failed because the device takes one process only; it is free now.
            self._worker, self._environment = await self._start_process()

    async def _kill_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.kill()

    async def _start_process(self) -> tuple[WorkerProcess, Environment]:
        assert self._task is not None
        task, path = self._task, self._task_path
        worker = WorkerProcess(self._fork_server)
        try:
            await worker.spawn()
            answer = await worker.ask(
                lambda number: Start(id=number, task=task, task_path=path),
                lambda _: None,
                START_S,
                START_S,
            )
        except (StepTimeout, WorkerDied) as error:
            await worker.kill()
            raise WorkerError(
                f"the device worker did not start: {error}: {worker.log[-500:]}"
            ) from error
        except BaseException:
            await worker.kill()
            raise
        assert isinstance(answer, Ready)
        return worker, answer.environment
