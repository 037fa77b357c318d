"""Inputs rounded to the precision below that of a tier."""

from __future__ import annotations

import torch

from evoengine.evaluate.worker.inputs import Tensors
from evoengine.task.schema import Task

# of the significand, without the leading one
BITS = {"fp64": 52, "fp32": 23, "tf32": 10, "fp16": 10, "bf16": 7, "fp8": 3}
DTYPE_BITS = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7}
PRECISION_NAMES = {23: "fp32", 10: "fp16", 3: "fp8", 1: "fp4"}
NEXT_BELOW = {52: 23, 23: 10, 10: 3, 7: 3, 3: 1}


def bits_below(task: Task, tier: str) -> int | None:
    """The bits of the significand one precision below that of `tier`; None where the task has no
    floating-point tensor.

    The precision of a tier is that of its name, or else of the task's most exact input.
    """
    given = [
        DTYPE_BITS[spec.dtype]
        for spec in task.inputs.values()
        if spec.shape is not None and spec.dtype in DTYPE_BITS
    ]
    return NEXT_BELOW[BITS.get(tier, max(given))] if given else None


def rounded_inputs(inputs: Tensors, bits: int) -> Tensors:
    """`inputs` with floating-point tensors in float64, rounded to `bits` bits of the significand.

    Their range stays: what is tried is the precision.
    """
    return {
        name: _rounded(value, bits) if value.is_floating_point() else value
        for name, value in inputs.items()
    }


def _rounded(value: torch.Tensor, bits: int) -> torch.Tensor:
    significand, exponent = torch.frexp(value.double())  # 0.5 <= |significand| < 1
    scale = 2.0 ** (bits + 1)
    return torch.ldexp((significand * scale).round() / scale, exponent)
