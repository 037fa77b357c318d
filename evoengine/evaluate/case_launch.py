"""What a process that only launches one case of a candidate is told, in a file."""

from __future__ import annotations

from evoengine.protocols import CompiledCase
from evoengine.records import Frozen
from evoengine.task.schema import Task

LAUNCHER = "evoengine.evaluate.worker.cuda.case_launcher"


class CaseLaunch(Frozen):
    """One case to be launched on one device, on inputs of one distribution and seed."""

    task: Task
    task_path: str
    case: CompiledCase
    ordinal: int
    distribution: str
    seed: int = 0
    warm_up_calls: int = 1  # before the call that a profiler looks at
