"""The factor of an input set of the distribution `extreme`: the largest with which outputs stay
finite. That the inputs decide them as well is looked at in input_rounding.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.inputs import Tensors

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
