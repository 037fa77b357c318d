"""The approximate functions of f32: by our C runtime, more exact than a GPU's."""

from __future__ import annotations

from evoengine.emulator.analyse.uniform import VARYING
from evoengine.emulator.lower.context import Context, Value
from evoengine.emulator.ptx.program import Instruction


def approximate(cx: Context, instruction: Instruction) -> None:
    """ex2, lg2, sin, cos, tanh of f32."""
    if instruction.type != "f32":
        raise cx.unsupported()
    flushed = "_ftz" if instruction.op == "ex2" and instruction.has("ftz") else ""
    (result,) = cx.call_lanes(f"ev_{instruction.op}_approx{flushed}_f32", [(32, cx.vector(instruction.operands[1], 32))], [32])
    cx.write(instruction.operands[0], Value(VARYING, result, 32))


HANDLERS = dict.fromkeys(("ex2", "lg2", "sin", "cos", "tanh"), approximate)
