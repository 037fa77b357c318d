"""16-bit floating point, alone and packed in twos."""

from __future__ import annotations

from evoengine.emulator.lower.context import Context
from evoengine.emulator.ptx.program import Instruction


def half_arithmetic(cx: Context, instruction: Instruction) -> None:
    """add, sub, mul, fma, min, max of f16, bf16, f16x2, bf16x2."""
    raise cx.unsupported()


def half_compare(cx: Context, instruction: Instruction) -> None:
    """setp and set of f16, bf16, f16x2, bf16x2."""
    raise cx.unsupported()
