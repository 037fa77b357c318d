"""One GPU, started for one task."""

from __future__ import annotations

import platform
import socket
from functools import partial
from pathlib import Path

import cupy
import torch

from evoengine import __version__
from evoengine.errors import DeviceError
from evoengine.evaluate.device.worker_protocol import RUNNER_NOT_STARTED, Runners
from evoengine.evaluate.worker.audit.task_audit import TaskAudit
from evoengine.evaluate.worker.backend import Announce
from evoengine.evaluate.worker.cuda.baselines import Baselines
from evoengine.evaluate.worker.cuda.cuda_backend import CudaBackend
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.gpu_monitor import monitor_of
from evoengine.evaluate.worker.cuda.harness.gpu_token import GpuToken
from evoengine.evaluate.worker.cuda.harness.virtual_memory import VirtualMemoryError
from evoengine.evaluate.worker.cuda.input_pool import InputPool
from evoengine.evaluate.worker.cuda.raced_timing import RacedTiming
from evoengine.evaluate.worker.cuda.runner.cuda_errors import CUDA_ERRORS
from evoengine.evaluate.worker.cuda.runner_client import RunnerGone
from evoengine.evaluate.worker.cuda.runner_table import RunnerTable
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.forensics.examiner import Examiner
from evoengine.evaluate.worker.forensics.recomputed_reference import Processor
from evoengine.evaluate.worker.judge import Judge
from evoengine.evaluate.worker.race_judge import judge_race
from evoengine.evaluate.worker.task_functions import AnnounceFunction, TaskFunctions
from evoengine.evaluate.worker.triton_version import triton_version
from evoengine.protocols import Job, Purpose, RaceReport, Report
from evoengine.records import Environment, Status
from evoengine.task.schema import Task


class CudaSession:
    """A grader: a device with a context, the task's functions, and the secret pool.

    Candidates run in other processes, the runners.
    """

    def __init__(
        self,
        task: Task,
        task_path: Path,
        ordinal: int,
        announce: Announce,
        announce_function: AnnounceFunction,
        runners: socket.socket,
    ) -> None:
        """`runners` is where the parent sends the connections of new runners."""
        announce("starting CUDA", False)
        self._announce = announce
        self._runners = RunnerTable(runners)
        try:
            device = torch.device("cuda", ordinal)
            # what this process takes is no candidate's of another grader
            with GpuToken(ordinal).starting():
                torch.cuda.set_device(device)
                cupy.cuda.Device(ordinal).use()
                # A stream of our own: graphs cannot be captured on the default one. It stays
                # current for the whole session.
                self.stream = torch.cuda.Stream(device)
                torch.cuda.set_stream(self.stream)
                self._harness = harness = GpuHarness(ordinal, self.stream)
        except (AssertionError, RuntimeError, VirtualMemoryError, *CUDA_ERRORS) as error:
            raise DeviceError(
                f"cuda:{ordinal} cannot be used: {str(error).strip().splitlines()[0]}"
            ) from error
        self.environment = describe(ordinal)
        functions = TaskFunctions(task, task_path, announce_function)
        expected_outputs = ExpectedOutputs(task, functions, device)
        self._audit = TaskAudit(
            task, functions, expected_outputs, lambda step: announce(step, False)
        )
        pool = InputPool(
            task,
            expected_outputs,
            lambda: announce("computing expected outputs", False),
        )
        baselines = Baselines(harness, task, functions, pool)
        self._backend = CudaBackend(
            task,
            harness,
            pool,
            baselines,
            monitor_of(ordinal),
            self._runners.drop,
            partial(self._runners.map_ahead, harness),
        )
        # references in float64 take seconds on a CPU
        synchronize = partial(torch.cuda.synchronize, device)
        processor = Processor(device, harness.token.shared, synchronize)
        examiner = Examiner(task, functions, self._backend, processor=processor)
        self._judge = Judge(task, self._backend, announce, examiner)

    def run(self, job: Job, runners: Runners) -> tuple[Report, bool]:
        """The report on `job`, and whether its runners may run the next one."""
        if job.purpose is Purpose.audit:
            with self._harness.token.held():
                return self._audit.report(), True
        try:
            self._runners.update(runners)
        except RunnerGone:
            return Report(status=Status.crash, reason=RUNNER_NOT_STARTED), False
        self._judge.healthy = True
        pair = self._runners.pair(runners.used[0]) if runners.used else None
        self._backend.begin_job(pair)
        report = self._judge.run(job)
        return report, self._judge.healthy and not self._backend.runner_has_grown

    @property
    def has_device(self) -> bool:
        """Whether the context of this process still answers."""
        return self._judge.has_device

    def race(self, newcomer: Job, holder: Job, runners: Runners) -> RaceReport:
        """The report on a race of two candidates, each in runners of its own."""
        try:
            self._runners.update(runners)
        except RunnerGone:
            return RaceReport(status=Status.crash, reason=RUNNER_NOT_STARTED)
        ours, theirs = (self._runners.pair(number) for number in runners.used)
        race = RacedTiming(self._backend, newcomer, ours, holder, theirs, self._announce)
        return judge_race(race, self._backend)


def describe(ordinal: int) -> Environment:
    """The device, and the versions of the software that verdicts depend on."""
    properties = torch.cuda.get_device_properties(ordinal)
    attributes = cupy.cuda.Device(ordinal).attributes
    driver = cupy.cuda.runtime.driverGetVersion()
    triton = triton_version()
    return Environment(
        device=f"cuda:{ordinal} {properties.name}",
        kind="cuda",
        arch=f"sm_{properties.major}{properties.minor}",
        sm_count=properties.multi_processor_count,
        max_shared_bytes=attributes["MaxSharedMemoryPerBlockOptin"],
        l2_bytes=properties.L2_cache_size,
        memory_bytes=properties.total_memory,
        versions={
            "cuda_driver": f"{driver // 1000}.{driver % 1000 // 10}",
            "torch": torch.__version__,
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
            "cupy": cupy.__version__,
            **({"triton": triton} if triton else {}),
            "python": platform.python_version(),
            "evoengine": __version__,
        },
    )
