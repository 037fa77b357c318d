"""A CUDA device behind two graders: one for first verdicts, one for verifications and races.

While one times, which needs the GPU alone, the other one loads, deals and compares; a verification
keeps no trial waiting for its first verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from evoengine.evaluate.device.grader_device import GraderDevice, cuda_fork_server
from evoengine.evaluate.nvml import memory_share
from evoengine.protocols import Job, Progress, RaceReport, Report
from evoengine.records import Environment
from evoengine.task.schema import Task

SPARES = 3  # pairs for verifications: trials are verified in bursts
# Each grader has input sets and expected outputs of its own.
MOST_MEMORY = 0.4  # of the device that may be in use when the second one starts


def cuda_search_device(ordinal: int, code_folder: Path | None = None) -> TwoGraders:
    """The CUDA device of this number; `code_folder` as for GraderDevice."""
    fork_server = cuda_fork_server(ordinal)
    return TwoGraders(
        GraderDevice(fork_server, code_folder),
        GraderDevice(fork_server, code_folder, SPARES),
        lambda: memory_share(ordinal),
    )


class TwoGraders:
    """Implements protocols.Device."""

    def __init__(
        self,
        first: GraderDevice,
        second: GraderDevice,
        used_memory: Callable[[], float | None],
    ) -> None:
        """Both have one fork server. `used_memory` returns how much of the device's memory is in
        use, None if nobody can tell; without room for the second one, `first` does its work too.
        """
        self._first = first
        self._second = second
        self._used_memory = used_memory
        self._task: Task | None = None
        self._task_path = ""
        self._verifier: asyncio.Task[GraderDevice] | None = None  # once a trial may need it

    async def start(self, task: Task, task_path: str) -> Environment:
        """Starts the first grader; raises DeviceError, TaskError or WorkerError."""
        self._task, self._task_path = task, task_path
        return await self._first.start(task, task_path)

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        """Runs a job beside one of the other kind."""
        if verify:
            return await (await self._verifying()).run(job, progress, verify=True)
        report = await self._first.run(job, progress)
        if job.scored_only and self._verifier is None:  # a search: verifications follow
            self._verifier = asyncio.create_task(self._start_second())
        return report

    async def race(self, newcomer: Job, holder: Job, progress: Progress) -> RaceReport:
        """Races two candidates beside first verdicts."""
        return await (await self._verifying()).race(newcomer, holder, progress)

    async def close(self) -> None:
        """Kills every process."""
        if self._verifier is not None:
            self._verifier.cancel()
            await asyncio.gather(self._verifier, return_exceptions=True)
        await self._second.close()
        await self._first.close()

    async def _verifying(self) -> GraderDevice:
        if self._verifier is None or self._verifier.cancelled():
            self._verifier = asyncio.create_task(self._start_second())
        return await asyncio.shield(self._verifier)

    async def _start_second(self) -> GraderDevice:
        """The device for verifications and races, started."""
        used = self._used_memory()
        if self._task is None or used is None or used > MOST_MEMORY:
            return self._first  # which says that it was not started
        await self._second.start(self._task, self._task_path)
        return self._second
