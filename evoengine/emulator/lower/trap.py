"""trap and brkpt: the kernel ends with an error."""

from __future__ import annotations

from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.ptx.syntax import Instruction
from evoengine.emulator.run.abi import StopReason


def trap(cx: LoweringContext, instruction: Instruction) -> None:
    """trap, brkpt: the launch ends with an error if any lane comes here."""
    if instruction.guard is None:
        cx.end(StopReason.trapped)
        return
    ir = cx.ir
    some, over, on = ir.get(f"icmp ne i32 {cx.mask_bits}, 0"), ir.label(), ir.label()
    ir.do(f"br i1 {some}, label %{over}, label %{on}, !prof !0")
    ir.place(over)
    cx.end(StopReason.trapped)
    ir.do(f"br label %{on}")
    ir.place(on)


HANDLERS = {"trap": trap, "brkpt": trap}
