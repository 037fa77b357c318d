"""A CUDA device behind two graders: one for first verdicts, one for verifications, races and
diagnoses.

One of them at a time may time a kernel, which needs the GPU alone. Beside that runners start, and
kernels are compiled; checks run beside checks. Neither a verification nor the diagnosis of a wrong
candidate keeps a trial waiting for its first verdict; a diagnosis waits for all else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from evoengine.errors import DeviceError, WorkerError
from evoengine.evaluate.device.grader_device import GraderDevice, cuda_fork_server
from evoengine.evaluate.nvml import PACKAGE, memory_share
from evoengine.protocols import Job, Progress, Purpose, RaceReport, Report
from evoengine.records import Environment, Status
from evoengine.task.schema import Task

SPARES = 3  # pairs for verifications: trials are verified in bursts
# Each grader has input sets and expected outputs of its own, and the second one more runners.
MOST_MEMORY = 0.25  # of the device that may be in use when the second one starts


def cuda_search_device(ordinal: int, code_folder: Path | None = None) -> TwoGraders:
    """The CUDA device of this number; `code_folder` as for GraderDevice."""
    fork_server = cuda_fork_server(ordinal, code_folder)
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
        self._starting: asyncio.Task[str] | None = None  # of the second one; why it cannot be used

    async def start(self, task: Task, task_path: str) -> Environment:
        """Starts the first grader; raises DeviceError, TaskError or WorkerError."""
        self._task, self._task_path = task, task_path
        return await self._first.start(task, task_path)

    async def run(self, job: Job, progress: Progress, verify: bool = False) -> Report:
        """Runs a job beside one of the other kind; an elite's sittings, which pause, where fewer
        jobs wait.
        """
        if verify:
            verifier = self._verifier(progress)
            if job.sittings > 1 and self._first.asked < verifier.asked:
                verifier = self._first
            return await verifier.run(job, progress, verify=True)
        if job.purpose is Purpose.diagnosis:
            return await self._verifier(progress).run(job, progress)
        report = await self._first.run(job, progress)
        # a search: verifications follow; and all that the first grader keeps of the task is there
        is_known = job.scored_only and report.status is Status.correct
        if is_known and self._starting is None:
            self._starting = asyncio.create_task(self._start_second(job))
        return report

    async def race(self, newcomer: Job, holder: Job, progress: Progress) -> RaceReport:
        """Races two candidates beside first verdicts."""
        return await self._verifier(progress).race(newcomer, holder, progress)

    async def close(self) -> None:
        """Kills every process."""
        try:
            if self._starting is not None:
                self._starting.cancel()
                await asyncio.gather(self._starting, return_exceptions=True)
            await self._second.end_processes()
        finally:
            await self._first.close()

    def _verifier(self, progress: Progress) -> GraderDevice:
        """The device for all but first verdicts: the second grader once it has all that a
        candidate needs, which takes ten seconds in which trials would wait.
        """
        if self._starting is None or not self._starting.done():
            return self._first
        problem = self._starting.result()
        if problem:
            progress(f"one grader does everything: {problem}")
        return self._first if problem else self._second

    async def _start_second(self, first_job: Job) -> str:
        """Starts the second grader and lets it prepare the cases of `first_job`, or returns why
        there is none.
        """
        assert self._task is not None  # the first one was started
        used = self._used_memory()
        if used is None:
            return f"how much device memory is free is not known (NVML, {PACKAGE})"
        if used > MOST_MEMORY:
            return f"{used:.0%} of the device memory are in use"
        try:
            await self._second.start(self._task, self._task_path)
            prepares = first_job.model_copy(update={"purpose": Purpose.preparation})
            await self._second.run(prepares, lambda _: None)
        except (DeviceError, WorkerError) as error:
            return f"a second one did not start: {error}"
        return ""
