"""Prepares a kernel for the commands that run it under one of NVIDIA's tools."""

from __future__ import annotations

import asyncio
from pathlib import Path

from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import DeviceError
from evoengine.evaluate.cuda_driver import cuda_devices
from evoengine.evaluate.cuda_tool import find_tool
from evoengine.evaluate.tool_runs import ToolRuns, compiled_for_gpu
from evoengine.protocols import Progress
from evoengine.records import Verdict
from evoengine.task.schema import Task


def tool_session(
    task: Task, task_path: Path, candidate: Candidate, tool: str, progress: Progress
) -> ToolRuns | Verdict:
    """Runs on the first GPU, or the verdict of a kernel that is refused before it runs.

    Raises DeviceError without a GPU, ToolchainError without the tool or without NVRTC.
    """
    found = cuda_devices()
    if not found.names:
        raise DeviceError(f"{tool} needs a GPU: {found.problem or 'no CUDA device'}")
    find_tool(tool)  # before anything is compiled
    code = asyncio.run(compiled_for_gpu(task, candidate, 0, progress))
    return code.compiled.refusal or ToolRuns(task, task_path, code, 0)
