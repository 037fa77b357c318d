"""Checks of the values that a task's function returned, and of the inputs that it was given.

Without them, a faulty function would be reported as a fault of every candidate.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from evoengine.errors import TaskError
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.task.schema import Output, Task, shape_of

EXACT_INTEGERS = 2.0**53  # of float64, in which outputs are compared
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def outputs_of(
    task: Task, name: str, result: Any, case: str, device: torch.device | None, exact: bool
) -> Tensors:
    """The outputs in `result` of function `name`, by output name, detached; raises TaskError.

    Each has the shape that the task gives the output for `case`, and lies on `device`, where
    the inputs lie (None: any). With `exact`, for the reference, floating-point outputs are
    float64; otherwise they have any floating-point dtype.
    """
    outputs = task.outputs
    if isinstance(result, torch.Tensor):
        result = (result,)
    if isinstance(result, tuple | list) and len(result) == len(outputs):
        result = dict(zip(outputs, result, strict=True))
    if not isinstance(result, dict) or set(result) != set(outputs):
        raise TaskError(
            f"{name}: expected a tensor for each of {', '.join(outputs)} for case {case}, got"
            f" {_described(result)}"
        )
    for key, spec in outputs.items():
        value, wanted = result[key], shape_of(spec.shape, task.scope(case))
        found = tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__
        if found != wanted:  # a comparison would broadcast it
            raise TaskError(
                f"{name}: {key} must be a tensor of shape {wanted} for case {case}, got {found}"
            )
        _refuse_kind(f"{name}: {key}", value, spec, case, device, exact)
    return {key: result[key].detach() for key in outputs}


def _described(result: Any) -> str:
    if isinstance(result, dict):
        return f"a dict with {', '.join(map(repr, result)) or 'nothing'}"
    if isinstance(result, tuple | list):
        return f"a {type(result).__name__} of {len(result)}"
    return type(result).__name__


def _refuse_kind(
    what: str,
    value: torch.Tensor,
    spec: Output,
    case: str,
    device: torch.device | None,
    exact: bool,
) -> None:
    if value.layout != torch.strided:
        raise TaskError(
            f"{what} must be a dense tensor for case {case}, got the layout {value.layout}; return"
            " it with .to_dense()"
        )
    if device is not None and value.device != device:
        raise TaskError(
            f"{what} must be on {device}, where the inputs are, for case {case}, got {value.device}"
        )
    kind = value.dtype
    if getattr(torch, spec.dtype).is_floating_point:
        if exact and kind != torch.float64:
            raise TaskError(
                f"{what} must be torch.float64 for case {case}, as the reference is given every"
                f" floating-point input, got {kind}: leave out what changes the type; no kernel is"
                " compared with a rounded reference"
            )
        if not kind.is_floating_point:
            raise TaskError(
                f"{what} must have a floating-point type for case {case}, as {spec.dtype} in the"
                f" task file, got {kind}"
            )
    elif kind.is_complex or (exact and kind.is_floating_point and kind != torch.float64):
        raise TaskError(
            f"{what} must be of an integer type or torch.float64 for case {case}, {spec.dtype} in"
            f" the task file, got {kind}"
        )


def refuse_values(what: str, value: torch.Tensor, dtype: str, where: str) -> None:
    """Raises TaskError where `value`, a reference's float64 output of any shape, holds a value that
    no kernel can write as `dtype`.
    """
    kind = getattr(torch, dtype)
    low, high = (float(end) for end in torch.aminmax(value))
    if math.isnan(low):  # as both are where any value is
        raise TaskError(f"{what} holds NaN for {where}: no output would equal it")
    if math.isinf(low) or math.isinf(high):
        if not kind.is_floating_point:
            raise TaskError(f"{what} holds an infinity for {where}, which {dtype} has not")
        low, high = (float(end) for end in torch.aminmax(value.masked_fill(value.isinf(), 0)))
    peak = low if -low > high else high
    if kind.is_floating_point:
        if not bool(torch.tensor(peak, dtype=torch.float64, device="cpu").to(kind).isfinite()):
            most = torch.finfo(kind).max
            raise TaskError(
                f"{what} reaches {peak:.6g} for {where}, {dtype} ends at {most:.6g}: no kernel can"
                " write that value"
            )
        return
    least, most = (0, 1) if kind == torch.bool else (torch.iinfo(kind).min, torch.iinfo(kind).max)
    if low < least or high > most:
        raise TaskError(
            f"{what} reaches {peak:.6g} for {where}, {dtype} goes from {least} to {most}: no kernel"
            " can write that value"
        )
    if max(-low, high) >= EXACT_INTEGERS:
        raise TaskError(
            f"{what} reaches {peak:.6g} for {where}, float64 is exact below 2**53: no"
            " output can be compared with it exactly; split it in two"
        )
    broken = value != value.round()
    if bool(broken.any()):
        first = float(value[broken][0])
        raise TaskError(
            f"{what} holds {first:.6g} for {where}, expected whole numbers, as {dtype} in the task"
            " file: no kernel can write it"
        )


def refuse_written(name: str, left: Tensors, given: Tensors, case: str) -> None:
    """Raises TaskError where function `name` changed one of its inputs.

    `left` are its inputs after the call, by name; `given` those before it, of the same shapes,
    on the same device. Where `left` is float64, `given` may have another floating dtype.
    """
    for key, before in given.items():
        if not _same_bits(
            left[key], before.to(torch.float64) if left[key].dtype == torch.float64 else before
        ):
            raise TaskError(
                f"{name} writes into its input {key} for case {case}: expected it to leave its"
                f" inputs as they are; work on a copy, {key}.clone()"
            )


def _same_bits(left: torch.Tensor, before: torch.Tensor) -> bool:
    if left.shape != before.shape or left.dtype != before.dtype or left.device != before.device:
        return False
    bits = _BITS[before.element_size()]
    return torch.equal(left.view(bits), before.view(bits))
