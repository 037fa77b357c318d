"""Arithmetic on 16-bit floating point, scalar and packed in pairs: by the C runtime, with one
rounding.
"""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import VARYING
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import floating, integer
from evoengine.emulator.lower.floats import flush_bits
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction

_KNOWN = {
    **dict.fromkeys(("add", "sub", "mul"), ("rn", "ftz", "sat")),
    **dict.fromkeys(("fma", "mad"), ("rn", "ftz", "sat", "relu")),
    **dict.fromkeys(("min", "max"), ("ftz", "NaN")),
}
_SUFFIXES = ("ftz", "sat", "relu")  # of the names in lanes.h, in this order


def half_arithmetic(cx: LoweringContext, instruction: Instruction) -> None:
    """add, sub, mul, fma, min, max of f16, bf16, f16x2, bf16x2."""
    op, type_ = instruction.op, instruction.type
    given = set(instruction.modifiers[:-1])
    if not given <= set(_KNOWN[op]) or (type_.startswith("b") and given & {"ftz", "sat"}):
        raise cx.unsupported()
    bits = TYPE_BITS[type_]
    sources = [cx.vector(operand, bits) for operand in instruction.operands[1:]]
    if op in ("min", "max"):
        sources = [
            flush_bits(cx, True, item, type_) if "ftz" in given else item for item in sources
        ]
        name = f"ev_{op}{'_nan' if 'NaN' in given else ''}_{type_}"
    else:
        suffix = "".join(f"_{item}" for item in _SUFFIXES if item in given)
        name = f"ev_{'fma' if op == 'mad' else op}{suffix}_{type_}"
    (found,) = cx.call_lanes(name, [(bits, item) for item in sources], [bits])
    cx.write(instruction.operands[0], Value(VARYING, found, bits))


def widen_half(cx: LoweringContext, vector: bool, value: str, source: str) -> str:
    """16-bit floating point as the bits of f32; exact."""
    ir = cx.ir
    if source == "bf16":
        wide = ir.get(f"zext {integer(16, vector)} {value} to {integer(32, vector)}")
        return ir.get(f"shl {integer(32, vector)} {wide}, {'splat (i32 16)' if vector else '16'}")
    number = ir.get(
        f"fpext {floating('f16', vector)} {cx.as_float(value, 'f16', vector, 16)} to"
        f" {floating('f32', vector)}"
    )
    return cx.as_integer(number, "f32", vector)


def halves_of(cx: LoweringContext, vector: bool, pair: str) -> tuple[str, str]:
    """The low and the high 16 bits of 32."""
    wide, kind = integer(32, vector), integer(16, vector)
    high = cx.ir.get(f"lshr {wide} {pair}, {'splat (i32 16)' if vector else '16'}")
    return cx.ir.get(f"trunc {wide} {pair} to {kind}"), cx.ir.get(f"trunc {wide} {high} to {kind}")


def joined(cx: LoweringContext, vector: bool, low: str, high: str) -> str:
    """32 bits of twice 16."""
    wide, kind, ir = integer(32, vector), integer(16, vector), cx.ir
    upper = ir.get(
        f"shl {wide} {ir.get(f'zext {kind} {high} to {wide}')},"
        f" {'splat (i32 16)' if vector else '16'}"
    )
    return ir.get(f"or {wide} {upper}, {ir.get(f'zext {kind} {low} to {wide}')}")
