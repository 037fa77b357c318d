"""The baselines: whether each runs and is right on this device, and its time."""

from __future__ import annotations

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.check import compare_outputs
from evoengine.evaluate.worker.cuda.cuda_launch import CUDA_ERRORS
from evoengine.evaluate.worker.cuda.timing import (
    Call,
    Flusher,
    Side,
    calls_per_sample,
    estimate_us,
    measure,
)
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.inputs import InputSet, make_inputs
from evoengine.evaluate.worker.returned_values import refuse_written
from evoengine.protocols import BaselineTimes
from evoengine.statistics import median
from evoengine.task.schema import Task

BUDGET_S = 0.05  # of sampling one baseline


def time_baselines(
    task: Task, expected_outputs: ExpectedOutputs, case: str, flusher: Flusher
) -> BaselineTimes:
    """The time of every baseline of `task` on `case`, in microseconds a call, with the L2 cache hot
    or cold as the objective says.
    """
    cold = flusher if task.objective.cache == "cold" else None
    expected_outputs.get(
        case, *_first_set(task)
    )  # a fault of the reference is not one of every baseline
    times, problems = {}, {}
    for name in task.baselines:
        try:
            with expected_outputs.functions.running(task.baselines[name], case):
                times[name] = _time_one(task, expected_outputs, case, name, cold)
        except (TaskError, *CUDA_ERRORS) as error:
            problems[name] = str(error).strip().splitlines()[0][:200]
    return BaselineTimes(median_us=times, problems=problems)


def _first_set(task: Task) -> InputSet:
    return task.distributions[0], task.seeds[0]


def _time_one(
    task: Task, expected_outputs: ExpectedOutputs, case: str, name: str, flusher: Flusher | None
) -> float:
    distribution, seed = _first_set(task)
    tensors = make_inputs(task, case, distribution, seed, expected_outputs.device)
    call = expected_outputs.functions.bind(task.baselines[name], tensors, case)
    outputs = {
        key: value.to(getattr(torch, task.outputs[key].dtype)) for key, value in call().items()
    }
    refuse_written(
        task.baselines[name],
        tensors,
        make_inputs(task, case, distribution, seed, expected_outputs.device),
        case,
    )
    loosest = max(task.tiers, key=lambda tier: task.tiers[tier].atol)
    check = compare_outputs(
        outputs, expected_outputs.get(case, distribution, seed), loosest, distribution, seed
    )
    if not check.ok:
        raise TaskError(
            f"{name} is wrong: max abs error {check.max_abs:.3g}, allowed {check.limit_abs:.3g}"
        )
    calls: list[Call] = [call] * calls_per_sample(estimate_us(call))
    side = Side(calls, [])
    return median(measure(side, side, BUDGET_S, flusher).candidate_us)
