"""The approximate functions, computed by the C runtime more accurately than on a GPU."""

from __future__ import annotations

from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction

# What lanes.h has: of bf16 ex2 exists with .ftz only, of tanh no type has .ftz.
_KNOWN = frozenset(
    {
        *[(op, ftz, "f32") for op in ("ex2", "lg2", "sin", "cos") for ftz in (False, True)],
        *[("ex2", False, type_) for type_ in ("f16", "f16x2")],
        *[("ex2", True, type_) for type_ in ("bf16", "bf16x2")],
        *[("tanh", False, type_) for type_ in ("f32", "f16", "f16x2", "bf16", "bf16x2")],
    }
)


def approximate(cx: LoweringContext, instruction: Instruction) -> None:
    """ex2, lg2, sin, cos, tanh of f32; ex2 and tanh of 16-bit floating point, alone and in twos."""
    op, type_, flushes = instruction.op, instruction.type, instruction.has("ftz")
    if (op, flushes, type_) not in _KNOWN:
        raise cx.unsupported()
    cx.apply_lanes(
        f"ev_{op}_approx{'_ftz' if flushes else ''}_{type_}",
        instruction.operands[1:2],
        TYPE_BITS[type_],
        TYPE_BITS[type_],
    )


HANDLERS = dict.fromkeys(("ex2", "lg2", "sin", "cos", "tanh"), approximate)
