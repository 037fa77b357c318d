"""The bytes of a task's tensors, and how many of them every call must move."""

from __future__ import annotations

import math

from evoengine.candidate.binding import ITEM_BYTES
from evoengine.task import expression
from evoengine.task.schema import Input, Output, Task, shape_of


def bytes_of(task: Task, case: str) -> tuple[int, int]:
    """The bytes that a call of `case` must read and must write: each input and output once, but for
    tensors that are changed in place, unless the task declares how much of them is needed.
    """
    scope = task.scope(case)
    changed = sum(_size(spec, scope) for spec in task.outputs.values() if spec.inout)
    declared = (task.work.input_bytes, task.work.output_bytes) if task.work else (None, None)

    def needed(whole: int, formula: str | None) -> int:
        if formula is None:
            return whole - changed
        return min(whole, int(expression.parse(formula).evaluate(scope)))

    read, written = map(needed, tensor_bytes(task, case), declared)
    return read, written


def tensor_bytes(task: Task, case: str) -> tuple[int, int]:
    """The bytes of the inputs and of the outputs of one call of `case`."""
    scope = task.scope(case)
    read, written = (
        sum(_size(spec, scope) for spec in specs)
        for specs in (task.inputs.values(), task.outputs.values())
    )
    return read, written


def _size(spec: Input | Output, scope: dict[str, expression.Value]) -> int:
    if spec.shape is None:
        return 0
    return math.prod(shape_of(spec.shape, scope)) * ITEM_BYTES[spec.dtype]
