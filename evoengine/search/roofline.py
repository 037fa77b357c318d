"""How near a kernel comes to the least time that the device allows."""

from __future__ import annotations

import math

from evoengine.errors import UsageError
from evoengine.records import Verdict
from evoengine.task.schema import Task


def roofline_share(task: Task, verdict: Verdict) -> float | None:
    """The least time that the device allows over the kernel's time, the geometric mean over the
    objective's cases; None where it is not known for each of them.
    """
    known = {timing.case: timing.floor_us for timing in verdict.timings}
    known |= {model.case: model.floor_us for model in verdict.modelled}
    floors = [known.get(case) for case in task.objective.cases]
    found = [floor for floor in floors if floor is not None]
    if verdict.latency_us is None or len(found) < len(floors):
        return None
    least_us = math.exp(sum(map(math.log, found)) / len(found))
    return least_us / verdict.latency_us.value


def refuse_without_work(task: Task, share: float | None) -> None:
    """Raises UsageError if a run of `task` is to end at a `share` of a roofline that is unknown."""
    if share is not None and task.work is None:
        raise UsageError(
            f"--stop-at-roofline {share:g}: task {task.name} does not declare the work of a call,"
            " so that the least time of a kernel is not known; declare `work: {flops: ..., unit:"
            " ...}` in the task file, or leave the option out"
        )
