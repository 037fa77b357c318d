"""The factor of an input set of the distribution `extreme`: the largest with which outputs stay
finite, and how much larger it makes them. That the inputs decide them as well is looked at in
input_rounding.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.task.schema import Task

T = TypeVar("T")


def largest_that_works(attempt: Callable[[float], T | None], factor: float) -> T:
    """What `attempt` returns for the first of `factor`, half of it, and so on to 1, with which it
    returns something and raises no TaskError; with 1, it decides alone.
    """
    while factor > 1:
        try:
            found = attempt(factor)
        except TaskError:  # a fault that is not due to the factor comes again with 1
            found = None
        if found is not None:
            return found
        factor /= 2
    last = attempt(1.0)
    assert last is not None  # nothing is smaller than 1
    return last


def overflows(outputs: Tensors, reference: Tensors) -> bool:
    """Whether an element of `outputs` is not finite where that of `reference` is; both hold, by the
    same names, tensors of the same shapes.
    """
    return any(
        bool((~value.isfinite() & reference[name].isfinite()).any())
        for name, value in outputs.items()
        if value.is_floating_point()
    )


def has_new_infinities(reference: Tensors, plain: Callable[[], Tensors]) -> bool:
    """Whether `reference` has an infinity where that of smaller inputs, which `plain` computes, has
    none.
    """
    if all(bool(torch.isfinite(value).all()) for value in reference.values()):
        return False
    return overflows(reference, plain())


def growth_of(task: Task, reference: Tensors, plain: Tensors) -> dict[str, float]:
    """How many times as large as `plain`, its values for inputs that are not multiplied, the
    reference is: the ratio of the mean magnitudes, at least 1, by floating-point output.
    """
    found = {}
    for name, value in reference.items():
        if getattr(torch, task.outputs[name].dtype).is_floating_point:
            small = _mean_magnitude(plain[name])
            ratio = _mean_magnitude(value) / small if small > 0 else 1.0
            found[name] = max(1.0, ratio) if math.isfinite(ratio) else 1.0
    return found


def _mean_magnitude(value: torch.Tensor) -> float:
    """The mean of the magnitudes of the finite elements; 0 where there are none."""
    finite = value[value.isfinite()]
    return float(finite.abs().mean()) if finite.numel() else 0.0
