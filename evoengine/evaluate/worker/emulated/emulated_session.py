"""The emulator brought up for one task."""

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
from evoengine.evaluate.device_description import modelled_gpu
from evoengine.evaluate.worker.emulated.array_cache import KeptArrays
from evoengine.evaluate.worker.emulated.emulated_backend import EmulatedBackend
from evoengine.evaluate.worker.emulated.reference_cache import KeptExpectedOutputs, KeptInputs
from evoengine.evaluate.worker.expected_outputs import ExpectedOutput, ExpectedOutputs, Keep, Key
from evoengine.evaluate.worker.judge import Doing, Judge
from evoengine.evaluate.worker.task_functions import AtWork, TaskFunctions
from evoengine.protocols import Job, Report
from evoengine.records import Environment
from evoengine.task.schema import Task

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # malloc.h


class EmulatedSession:
    """An emulator, the task's functions, and what was computed with them so far."""

    def __init__(
        self,
        task: Task,
        task_path: Path,
        target: str,
        threads: int,
        checks: Sequence[str],
        answers: Path,
        doing: Doing,
        at_work: AtWork,
    ) -> None:
        doing("starting the emulator", False)
        # beside references all that torch does is over before other threads have begun
        torch.set_num_threads(1)
        _keep_freed_memory()
        try:
            self._emulator = Emulator(target=target, threads=threads)
        except (EmulatorError, OSError) as error:
            raise DeviceError(f"the emulator cannot be used here: {error}") from error
        self.environment = describe(targets.find(target), threads)
        cpu = torch.device("cpu")
        arrays = KeptArrays(answers)
        functions = TaskFunctions(task, task_path, at_work)
        right = ExpectedOutputs(
            task,
            functions,
            cpu,
            _in_threads(threads, KeptExpectedOutputs(arrays, task, task_path)),
            KeptInputs(arrays, task),
        )
        repeated = _Repeated(doing)
        self._backend = EmulatedBackend(task, right, self._emulator, checks, repeated.again)
        self._judge = Judge(task, right, self._backend, repeated)

    def run(self, job: Job) -> tuple[Report, bool]:
        """The report on `job`, and whether this process may go on."""
        report = self._judge.run(job)
        return report, self._judge.healthy and self._backend.settled()


def _in_threads(count: int, keep: Keep) -> Keep:
    """`keep`, with answers computed on `count` cores."""

    def kept(key: Key, make: Callable[[], ExpectedOutput]) -> ExpectedOutput:
        def made() -> ExpectedOutput:
            torch.set_num_threads(count)
            try:
                return make()
            finally:
                torch.set_num_threads(1)

        return keep(key, made)

    return kept


def _keep_freed_memory() -> None:
    """Has the C library keep what large tensors leave behind: references in float64 take a quarter
    of the time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # of glibc; elsewhere it stays as it is
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


class _Repeated:
    """Says what is done, and says it again before every launch: each of them has the limit of
    silence for its own.
    """

    def __init__(self, doing: Doing) -> None:
        self._doing = doing
        self._last = ("", False)

    def __call__(self, what: str, candidate: bool) -> None:
        self._last = (what, candidate)
        self._doing(what, candidate)

    def again(self) -> None:
        self._doing(*self._last)


def describe(target: targets.TargetGpu, threads: int) -> Environment:
    """The GPU that is modelled and the programs that verdicts are found with."""
    versions = {
        "llvmlite": importlib.metadata.version("llvmlite"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "evoengine": __version__,
    }
    return modelled_gpu(target, threads).model_copy(update={"versions": versions})
