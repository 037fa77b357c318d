"""One GPU, started for one task."""

from __future__ import annotations

import platform
from pathlib import Path

import cupy
import torch

from evoengine import __version__
from evoengine.errors import DeviceError
from evoengine.evaluate.worker.backend import Announce
from evoengine.evaluate.worker.cuda.cuda_backend import CudaBackend
from evoengine.evaluate.worker.cuda.cuda_launch import CUDA_ERRORS, limit_device
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.judge import Judge
from evoengine.evaluate.worker.task_functions import AnnounceFunction, TaskFunctions
from evoengine.protocols import Job, Report
from evoengine.records import Environment, Status
from evoengine.task.schema import Task


class CudaSession:
    """A device with a context, the task's functions, and their expected outputs."""

    def __init__(
        self,
        task: Task,
        task_path: Path,
        ordinal: int,
        announce: Announce,
        announce_function: AnnounceFunction,
    ) -> None:
        announce("starting CUDA", False)
        try:
            device = torch.device("cuda", ordinal)
            torch.cuda.set_device(device)
            cupy.cuda.Device(ordinal).use()
            limit_device()
            # A stream of our own: graphs cannot be captured on the default one. It stays current
            # for the whole session.
            self.stream = torch.cuda.Stream(device)
            torch.cuda.set_stream(self.stream)
        except (AssertionError, RuntimeError, *CUDA_ERRORS) as error:
            raise DeviceError(
                f"cuda:{ordinal} cannot be used: {str(error).strip().splitlines()[0]}"
            ) from error
        self.environment = describe(ordinal)
        expected_outputs = ExpectedOutputs(
            task, TaskFunctions(task, task_path, announce_function), device
        )
        self._judge = Judge(task, expected_outputs, CudaBackend(task, expected_outputs), announce)

    def run(self, job: Job) -> tuple[Report, bool]:
        """The report on `job`, and whether this process may judge the next one."""
        report = self._judge.run(job)
        healthy = self._judge.healthy
        if healthy and report.status is not Status.correct:
            healthy = _context_works()
        return report, healthy


def _context_works() -> bool:
    """Whether the device still computes; checked after every candidate that failed."""
    try:
        ones = torch.ones(1024, device="cuda")
        return float(ones.sum()) == 1024.0
    except CUDA_ERRORS:
        return False


def describe(ordinal: int) -> Environment:
    """The device, and the versions of the software that verdicts depend on."""
    properties = torch.cuda.get_device_properties(ordinal)
    attributes = cupy.cuda.Device(ordinal).attributes
    driver = cupy.cuda.runtime.driverGetVersion()
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
            "python": platform.python_version(),
            "evoengine": __version__,
        },
    )
