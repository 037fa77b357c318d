"""The emulator, started for one task."""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from evoengine import __version__
from evoengine.emulator import targets
from evoengine.emulator.device import Emulator
from evoengine.emulator.emulator_errors import EmulatorError
from evoengine.errors import DeviceError
from evoengine.evaluate.device.worker_protocol import Runners
from evoengine.evaluate.device_description import modelled_gpu
from evoengine.evaluate.worker.audit.task_audit import TaskAudit
from evoengine.evaluate.worker.backend import Announce
from evoengine.evaluate.worker.emulated.array_cache import ArrayCache
from evoengine.evaluate.worker.emulated.emulated_backend import EmulatedBackend
from evoengine.evaluate.worker.emulated.reference_cache import DiskInputCache, DiskOutputCache
from evoengine.evaluate.worker.emulated.secret_sets import read_secret
from evoengine.evaluate.worker.expected_outputs import (
    ExpectedOutput,
    ExpectedOutputs,
    Key,
    OutputCache,
)
from evoengine.evaluate.worker.forensics.examiner import Examiner
from evoengine.evaluate.worker.judge import Judge
from evoengine.evaluate.worker.task_functions import AnnounceFunction, TaskFunctions
from evoengine.protocols import Job, Purpose, RaceReport, Report
from evoengine.records import Environment
from evoengine.task.schema import Task

NOT_RACED = "modelled times have no noise: there is nothing to race"
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # malloc.h


class EmulatedSession:
    """An emulator, the task's functions, and their expected outputs."""

    def __init__(
        self,
        task: Task,
        task_path: Path,
        target: str,
        threads: int,
        checks: Sequence[str],
        cache_dir: Path,
        announce: Announce,
        announce_function: AnnounceFunction,
    ) -> None:
        announce("starting the emulator", False)
        # torch's other work here is too small for threads; references get all cores again
        torch.set_num_threads(1)
        _keep_freed_memory()
        try:
            self._emulator = Emulator(target=target, threads=threads)
        except (EmulatorError, OSError) as error:
            raise DeviceError(f"the emulator cannot be used here: {error}") from error
        self.environment = describe(targets.find(target), threads)
        cpu = torch.device("cpu")
        arrays = ArrayCache(cache_dir)
        functions = TaskFunctions(task, task_path, announce_function)
        expected_outputs = ExpectedOutputs(
            task,
            functions,
            cpu,
            _in_threads(threads, DiskOutputCache(arrays, task, task_path)),
            DiskInputCache(arrays, task, task_path),
        )
        self._audit = TaskAudit(
            task, functions, expected_outputs, lambda step: announce(step, False)
        )
        repeated = _RepeatedAnnouncement(announce)
        self._backend = EmulatedBackend(
            task,
            expected_outputs,
            self._emulator,
            read_secret(cache_dir),
            checks,
            repeated.again,
        )
        examiner = Examiner(task, functions, self._backend)
        self._judge = Judge(task, self._backend, repeated, examiner)

    def race(self, _newcomer: Job, _holder: Job, _runners: Runners) -> RaceReport:
        """Raises DeviceError."""
        raise DeviceError(NOT_RACED)

    @property
    def has_device(self) -> bool:
        """There is none that could break apart from this process."""
        return True

    def run(self, job: Job, _runners: Runners) -> tuple[Report, bool]:
        """The report on `job`, and whether this process may judge the next one."""
        if job.purpose is Purpose.audit:
            return self._audit.report(), True
        report = self._judge.run(job)
        return report, self._judge.healthy and self._backend.compilations_ended()


def _in_threads(count: int, cache: OutputCache) -> OutputCache:
    """`cache`, whose missing entries are computed on `count` cores."""

    def get(key: Key, make: Callable[[], ExpectedOutput]) -> ExpectedOutput:
        def make_in_threads() -> ExpectedOutput:
            torch.set_num_threads(count)
            try:
                return make()
            finally:
                torch.set_num_threads(1)

        return cache(key, make_in_threads)

    return get


def _keep_freed_memory() -> None:
    """Makes malloc keep the memory of freed tensors: float64 references then take a quarter of the
    time.
    """
    # glibc only; other C libraries keep their defaults
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


class _RepeatedAnnouncement:
    """Announces steps, and the step under way again before every launch: the limit of silence then
    holds for each launch.
    """

    def __init__(self, announce: Announce) -> None:
        self._announce = announce
        self._last = ("", False)

    def __call__(self, step: str, candidate: bool) -> None:
        self._last = (step, candidate)
        self._announce(step, candidate)

    def again(self) -> None:
        """Announces the last step once more."""
        self._announce(*self._last)


def describe(target: targets.TargetGpu, threads: int) -> Environment:
    """The modelled GPU, and the versions of the software that verdicts depend on."""
    versions = {
        "llvmlite": importlib.metadata.version("llvmlite"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "evoengine": __version__,
    }
    return modelled_gpu(target, threads).model_copy(update={"versions": versions})
