"""What `run` and `evaluate` do on a machine without a GPU: say so, compile, report resources."""

from __future__ import annotations

import asyncio
from pathlib import Path

from evoengine import wiring
from evoengine.arch import DEFAULT_ARCH
from evoengine.candidate import Candidate
from evoengine.cli import output
from evoengine.errors import DeviceError
from evoengine.report import as_json as json_text
from evoengine.report.derive import compiled_row
from evoengine.report.resource_tables import compiled_table
from evoengine.report.rows import CompiledRow
from evoengine.task import Task


def compile_and_report(task: Task, task_path: Path, kernels: list[tuple[str, Candidate]], as_json: bool) -> int:
    """Compiles `kernels` (name, candidate) for the task's target and prints what they take; DeviceError's exit code."""
    arch = task.target.arch if task.target else DEFAULT_ARCH
    if task.target:
        what = f"for {arch}, the target of task {task.name}, and their resources are compared with its limits"
    else:
        what = f"for {arch}, because task {task.name} names no target, and their resources are reported"
    message = (
        "There is no GPU on this machine, so no kernel can be run, checked or timed here, and no search was started. "
        f"The kernels are compiled {what}. "
        "On a machine with an NVIDIA GPU the same command does the whole job; `evoengine doctor` says what was looked for."
    )
    console = output.messages()
    console.print(message, style="yellow", soft_wrap=not console.is_terminal)
    found = asyncio.run(wiring.compile_only(task, task_path, [candidate for _, candidate in kernels], output.progress()))
    rows = [
        compiled_row(name, candidate.plan.precision, verdict, task.target)
        for (name, candidate), (_, verdict) in zip(kernels, found, strict=True)
    ]
    output.give(as_json, lambda: _as_json(task, arch, message, rows), lambda: compiled_table(rows))
    return DeviceError.exit_code


def _as_json(task: Task, arch: str, message: str, rows: list[CompiledRow]) -> str:
    return json_text.dumps({"task": task.name, "device": None, "message": message, "arch": arch, "kernels": rows})
