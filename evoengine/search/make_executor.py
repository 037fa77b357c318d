"""Makes the executor of a run from this machine's compilers and the chosen device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import UsageError
from evoengine.evaluate.checked_beside import CheckedBeside, emulators_here
from evoengine.evaluate.compile.pool import CLANG, CompilePool
from evoengine.evaluate.device_choice import DeviceChoice, choose_device, device_beside
from evoengine.evaluate.local_executor import LocalExecutor, audit_on
from evoengine.evaluate.scripted.scripted_executor import SCRIPTED_DEVICE, ScriptedExecutor
from evoengine.evaluate.stored_baselines import StoredBaselines
from evoengine.paths import cache_dir
from evoengine.protocols import Executor, Progress
from evoengine.records import AuditReport, Verdict
from evoengine.search.references import reference_digests
from evoengine.task.schema import Task

# Of a verdict that no search asked for: an emulator of 2 cores tries about a thousand changes in
# that time (docs/measurements/diagnoses.md). A GPU costs more by the second, and beside it an
# emulator with more cores tries them.
REPAIR_S, REPAIR_EMULATED_S = 20.0, 40.0
# one core is left to the event loop and the worker
COMPILERS = max(1, min(16, (os.cpu_count() or 2) - 1))


def find_device(device: str, task: Task) -> DeviceChoice:
    """The device that option `device` selects for `task`; raises UsageError, DeviceError."""
    return choose_device(device, task.target.arch if task.target else None)


def make_executor(
    task: Task,
    task_path: Path,
    device: DeviceChoice,
    checks: Sequence[str],
    baselines: Mapping[str, str] | None = None,
    measure_baselines: bool = False,
    repair_s: float = 0.0,
    likes: Sequence[Candidate] = (),
) -> Executor:
    """An executor on `device`, not started yet.

    `checks` are those of checked mode, on the emulator or beside a GPU; `baselines` maps a case to
    the baseline to time against, the fastest by default: as stored, or measured anew with
    `measure_baselines`. In a wrong kernel, `repair_s` is how long the one change is looked for that
    makes it right; what kernels of `likes`, which are right, have in its place is tried first.
    """
    if device.is_scripted:
        return ScriptedExecutor(task, SCRIPTED_DEVICE)
    clang = CompilePool(COMPILERS, module=CLANG) if device.is_emulator else None
    stored, beside = None, None
    if not device.is_emulator:
        references = reference_digests(task, task_path)
        stored = StoredBaselines(cache_dir() / "baselines", task, references, measure_baselines)
        beside = _beside(task, task_path, checks) if checks else None
    return LocalExecutor(
        task,
        str(task_path),
        CompilePool(COMPILERS),
        device.make_device(checks),
        baselines,
        clang,
        stored,
        beside,
        repair_s,
        likes,
    )


def _beside(task: Task, task_path: Path, checks: Sequence[str]) -> CheckedBeside:
    emulators = emulators_here()
    return CheckedBeside(
        task,
        str(task_path),
        CompilePool(2 * emulators, module=CLANG),
        lambda arch: device_beside(arch, checks),
        emulators=emulators,
    )


async def audit_once(
    task: Task, task_path: Path, device: DeviceChoice, progress: Progress
) -> AuditReport:
    """The audit of a task, which needs no compiler; raises EvoError."""
    if device.is_scripted:
        raise UsageError("--device scripted computes nothing: it cannot audit a task")
    used = device.make_device(())
    try:
        progress("starting the device")
        await used.start(task, str(task_path))
        return await audit_on(used, progress)
    finally:
        await used.close()


def repair_seconds(device: DeviceChoice) -> float:
    """How long a verdict that no search asked for looks for the change that makes it right."""
    return REPAIR_EMULATED_S if device.is_emulator else REPAIR_S


async def evaluate_once(
    task: Task,
    task_path: Path,
    candidate: Candidate,
    device: DeviceChoice,
    checks: Sequence[str],
    progress: Progress,
    repair_s: float | None = None,
    likes: Sequence[Candidate] = (),
) -> Verdict:
    """The verdict on one candidate, without a search; raises EvoError.

    `repair_s` and `likes` are as in make_executor; the time follows from the device by default.
    """
    if device.is_scripted:
        raise UsageError("--device scripted judges no kernel: its verdicts are drawn at random")
    seconds = repair_seconds(device) if repair_s is None else repair_s
    executor = make_executor(task, task_path, device, checks, repair_s=seconds, likes=likes)
    try:
        progress("starting the device")
        for notice in (await executor.start()).notices:
            progress(f"note: {notice}")
        return await executor.evaluate(candidate, progress)
    finally:
        await executor.close()
