"""Integer operands of conversions to floating point."""

from __future__ import annotations

from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import integer
from evoengine.emulator.lower.floats import fixed
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction


def read_integer(cx: LoweringContext, instruction: Instruction, source: str) -> Value:
    """The integer operand of a conversion to floating point; saturated to [0, 1] as the instruction
    says.
    """
    bits = TYPE_BITS[source]
    value = cx.read(instruction.operands[1], bits)
    if not instruction.has("sat"):
        return value

    def build(vector: bool, text: str) -> str:
        kind = integer(bits, vector)
        if source.startswith("s"):
            text = cx.ir.intrinsic("smax", kind, text, fixed(0, bits, vector))
        return cx.ir.intrinsic("umin", kind, text, fixed(1, bits, vector))

    return cx.compute([value], bits, build)


def as_64_bits(cx: LoweringContext, value: Value, source: str) -> tuple[str, str]:
    """All lanes of an integer as the u64 or s64 that the C runtime takes, and which of the two."""
    sign = source[0]
    if value.bits == 64:
        return cx.as_vector(value), f"{sign}64"
    how = "sext" if sign == "s" else "zext"
    return cx.ir.get(
        f"{how} {integer(value.bits, True)} {cx.as_vector(value)} to {integer(64, True)}"
    ), f"{sign}64"
