"""Inputs that functions of the task draw, and the checks of what these return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.inputs import scalar_inputs
from evoengine.evaluate.worker.set_distributions import Extents
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.task.schema import Task


class DrawingFunctions:
    """Implements inputs.DrawByFunction; the first draw of each input is made twice."""

    def __init__(self, task: Task, functions: TaskFunctions) -> None:
        self._task = task
        self._functions = functions
        self._repeated: set[str] = set()  # inputs of which two draws were compared

    def __call__(
        self,
        name: str,
        case: str,
        distribution: str,
        shape: Extents,
        generator: Callable[[], torch.Generator],
    ) -> torch.Tensor:
        """Input `name` of `case`: contiguous, of its dtype, on the generator's device; raises
        TaskError.
        """
        values = self._drawn(name, case, distribution, shape, generator())
        if name not in self._repeated:
            self._repeated.add(name)
            again = self._drawn(name, case, distribution, shape, generator())
            if not torch.equal(values, again):
                raise TaskError(
                    f"{self._task.drawing_functions[name]} draws two values of {name} with the same"
                    f" seed for case {case}: expected one; draw with the generator that it is given"
                )
        return values

    def _drawn(
        self, name: str, case: str, distribution: str, shape: Extents, generator: torch.Generator
    ) -> torch.Tensor:
        function = self._task.drawing_functions[name]
        known = {
            **scalar_inputs(self._task, case),
            "generator": generator,
            "shape": shape,
            "distribution": distribution,
        }
        value = self._functions.result(function, known, case)
        dtype = getattr(torch, self._task.inputs[name].dtype)
        where = f"for case {case}, distribution {distribution}"
        return checked_draw(f"{function}: {name}", value, shape, dtype, generator.device, where)


def checked_draw(
    what: str,
    value: Any,
    shape: Extents,
    dtype: torch.dtype,
    device: torch.device,
    where: str,
) -> torch.Tensor:
    """A copy of `value` as `dtype` on `device`, contiguous; raises TaskError unless it is a finite
    tensor of `shape`, there or on the CPU, all of whose values `dtype` can hold.
    """
    kind = str(dtype).removeprefix("torch.")
    found = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
    if found != shape:
        raise TaskError(f"{what} must be a tensor of shape {shape} {where}, got {found}")
    if value.layout != torch.strided:
        raise TaskError(f"{what} must be a dense tensor {where}, got the layout {value.layout}")
    if value.device != device and value.device.type != "cpu":
        raise TaskError(f"{what} must be on {device} or the CPU {where}, got {value.device}")
    if not torch.can_cast(value.dtype, dtype):
        raise TaskError(f"{what} must be of {kind}, or fit it, {where}, got {value.dtype}")
    made: torch.Tensor = value.detach().to(device, dtype, copy=True).contiguous()
    if not bool(made.isfinite().all()):
        raise TaskError(f"{what} is not finite as {kind} {where}")
    if not dtype.is_floating_point and not torch.equal(
        made.to(value.dtype), value.detach().to(device)
    ):
        raise TaskError(f"{what} has values beyond {kind} {where}")
    return made
