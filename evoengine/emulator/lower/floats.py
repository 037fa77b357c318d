"""What floating point instructions have in common: flushing, saturation, directed rounding, NaNs;
roots, reciprocals, tests.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from evoengine.emulator.analyse.uniformity import VARYING
from evoengine.emulator.lower.context import LoweringContext, Value, literal
from evoengine.emulator.lower.emitter import FLOATS, LANES, floating, integer
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction, Operand

HALVES = ("f16", "bf16", "f16x2", "bf16x2")
DIRECTED = ("rz", "rm", "rp")
# by bits: also the mask of the exponent
INFINITY = {
    "f16": 0x7C00,
    "bf16": 0x7F80,
    "f32": 0x7F800000,
    "f64": 0x7FF << 52,
}
_SMALLEST_NORMAL = {"f32": 1 << 23, "f64": 1 << 52}


def is_float(type_: str) -> bool:
    """Whether a PTX type is a scalar floating one that LLVM computes in."""
    return type_ in ("f32", "f64")


def is_half(type_: str) -> bool:
    """Whether a PTX type is 16-bit floating, alone or packed in twos."""
    return type_ in HALVES


def fixed(number: int, bits: int, vector: bool) -> str:
    """An integer literal of every lane; `number` may be as unsigned."""
    text = literal(number, bits)
    return f"splat (i{bits} {text})" if vector else text


def constant(value: float, type_: str, vector: bool) -> str:
    """A floating literal of every lane; `value` must be exact in `type_`."""
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    text = f"0x{bits:016X}"
    return f"splat ({FLOATS[type_]} {text})" if vector else text


def flush(cx: LoweringContext, vector: bool, text: str) -> str:
    """Denormals of f32 become zero with their sign."""
    kind, ir = floating("f32", vector), cx.ir
    size = ir.intrinsic("fabs", kind, text)
    small = ir.get(f"fcmp olt {kind} {size}, {constant(2.0**-126, 'f32', vector)}")
    zero = ir.intrinsic("copysign", kind, constant(0.0, "f32", vector), text)
    return ir.get(f"select {integer(1, vector)} {small}, {kind} {zero}, {kind} {text}")


def flush_bits(cx: LoweringContext, vector: bool, text: str, type_: str) -> str:
    """The same for the bits of f32, f16 and bf16, alone or in twos."""
    ir, bits, single = cx.ir, TYPE_BITS[type_], type_.removesuffix("x2")
    width = TYPE_BITS[single]
    lanes = (LANES if vector else 1) * bits // width
    kind, whole = (f"<{lanes} x i{width}>" if lanes > 1 else f"i{width}"), integer(bits, vector)

    def each(number: int) -> str:
        return f"splat (i{width} {literal(number, width)})" if lanes > 1 else literal(number, width)

    parts = (
        ir.bitcast(text, whole, kind)
        if not text.startswith("splat")
        else ir.get(f"bitcast {whole} {text} to {kind}")
    )
    exponent = ir.get(f"and {kind} {parts}, {each(INFINITY[single])}")
    small = ir.get(f"icmp eq {kind} {exponent}, {each(0)}")
    sign = ir.get(f"and {kind} {parts}, {each(1 << (width - 1))}")
    flag = f"<{lanes} x i1>" if lanes > 1 else "i1"
    return ir.bitcast(ir.get(f"select {flag} {small}, {kind} {sign}, {kind} {parts}"), kind, whole)


def saturate(cx: LoweringContext, type_: str, vector: bool, text: str) -> str:
    """Clamped to [0, 1]; NaN and -0 become +0."""
    kind, flag, ir = floating(type_, vector), integer(1, vector), cx.ir
    zero, one = constant(0.0, type_, vector), constant(1.0, type_, vector)
    positive = ir.get(
        f"select {flag} {ir.get(f'fcmp ogt {kind} {text}, {zero}')}, {kind} {text}, {kind} {zero}"
    )
    return ir.get(
        f"select {flag} {ir.get(f'fcmp olt {kind} {positive}, {one}')}, {kind} {positive}, {kind}"
        f" {one}"
    )


def canonical_nan(cx: LoweringContext, type_: str, vector: bool, text: str) -> str:
    """The bits with every NaN replaced by the canonical NaN of GPUs, 0x7fffffff."""
    if type_ != "f32":
        return text
    kind, ir = integer(32, vector), cx.ir
    value = cx.as_float(text, type_, vector, 32)
    wrong = ir.get(f"fcmp uno {floating(type_, vector)} {value}, {value}")
    return ir.get(
        f"select {integer(1, vector)} {wrong}, {kind} {fixed(0x7FFFFFFF, 32, vector)}, {kind}"
        f" {text}"
    )


def float_operands(
    cx: LoweringContext, instruction: Instruction, vector: bool, values: tuple[str, ...]
) -> list[str]:
    """Operands as floating point, flushed as the instruction says."""
    found = cx.floats(instruction.type, vector, *values)
    return [flush(cx, vector, item) for item in found] if _flushes(instruction) else found


def float_result(cx: LoweringContext, instruction: Instruction, vector: bool, text: str) -> str:
    """A floating result as an integer, flushed and saturated as the instruction says."""
    type_ = instruction.type
    if instruction.has("sat"):
        text = saturate(cx, type_, vector, text)
    if _flushes(instruction):
        text = flush(cx, vector, text)
    return cx.as_integer(text, type_, vector)


def _flushes(instruction: Instruction) -> bool:
    return instruction.has("ftz") and instruction.type == "f32"


def float_operation(
    cx: LoweringContext, instruction: Instruction, operation: str, count: int
) -> None:
    """An instruction of LLVM (or, with "@", an intrinsic) over `count` operands of f32 or f64; the
    C runtime for other roundings.
    """
    sources, bits = instruction.operands[1 : 1 + count], TYPE_BITS[instruction.type]
    mode = next((item for item in DIRECTED if instruction.has(item)), None)
    if mode:
        name = "fma" if instruction.op == "mad" else instruction.op
        _by_runtime(cx, instruction, f"ev_{name}_{mode}_{instruction.type}", sources)
        return

    def build(vector: bool, *values: str) -> str:
        kind, operands = (
            floating(instruction.type, vector),
            float_operands(cx, instruction, vector, values),
        )
        if operation[0] == "@":
            text = cx.ir.intrinsic(operation[1:], kind, *operands)
        else:
            text = cx.ir.get(f"{operation} {kind} {', '.join(operands)}")
        return float_result(cx, instruction, vector, text)

    cx.apply(sources, bits, bits, build)


def _by_runtime(
    cx: LoweringContext, instruction: Instruction, function: str, sources: Sequence[Operand]
) -> None:
    """A C function over operands of the instruction's type; it handles neither .ftz nor .sat."""
    type_, bits = instruction.type, TYPE_BITS[instruction.type]
    given = [cx.vector(source, bits) for source in sources]
    if _flushes(instruction):
        given = [flush_bits(cx, True, item, type_) for item in given]
    (found,) = cx.call_lanes(function, [(bits, item) for item in given], [bits])
    if instruction.has("sat") or _flushes(instruction):
        found = float_result(cx, instruction, True, cx.as_float(found, type_, True, bits))
    cx.write(instruction.operands[0], Value(VARYING, found, bits))


def square_root(cx: LoweringContext, instruction: Instruction) -> None:
    """sqrt of f32 and f64, correctly rounded also where an approximation would do."""
    float_operation(cx, instruction, "@sqrt", 1)


def reciprocal(cx: LoweringContext, instruction: Instruction) -> None:
    """rcp, rsqrt of f32 and f64: by division, as exact as that is; of f64 with .ftz by the upper
    word alone, as documented.
    """
    bits, type_ = TYPE_BITS[instruction.type], instruction.type
    if type_ == "f64" and instruction.has("ftz"):
        _by_runtime(
            cx, instruction, f"ev_{instruction.op}_approx_ftz_f64", instruction.operands[1:2]
        )
        return
    if set(DIRECTED) & set(instruction.modifiers):
        float_operation(cx, instruction, "", 1)
        return

    def build(vector: bool, *values: str) -> str:
        (value,) = float_operands(cx, instruction, vector, values)
        kind = floating(type_, vector)
        if instruction.op == "rsqrt":
            value = cx.ir.intrinsic("sqrt", kind, value)
        return float_result(
            cx,
            instruction,
            vector,
            cx.ir.get(f"fdiv {kind} {constant(1.0, type_, vector)}, {value}"),
        )

    cx.apply(instruction.operands[1:2], bits, bits, build)


def copy_sign(cx: LoweringContext, instruction: Instruction) -> None:
    """copysign d, a, b: the sign of a, the size of b."""
    bits, type_ = TYPE_BITS[instruction.type], instruction.type

    def build(vector: bool, sign: str, size: str) -> str:
        a, b = cx.floats(type_, vector, sign, size)
        return cx.as_integer(
            cx.ir.intrinsic("copysign", floating(type_, vector), b, a), type_, vector
        )

    cx.apply(instruction.operands[1:3], bits, bits, build)


def test_property(cx: LoweringContext, instruction: Instruction) -> None:
    """testp: the class of a number; a zero counts as normal."""
    bits, ir, type_ = TYPE_BITS[instruction.type], cx.ir, instruction.type
    infinity, normal = INFINITY[type_], _SMALLEST_NORMAL[type_]
    ranges = {  # of the magnitude's bits, both ends in it
        "finite": [(0, infinity - 1)],
        "infinite": [(infinity, infinity)],
        "number": [(0, infinity)],
        "notanumber": [(infinity + 1, (1 << (bits - 1)) - 1)],
        "normal": [(0, 0), (normal, infinity - 1)],
        "subnormal": [(1, normal - 1)],
    }[instruction.modifiers[0]]

    def build(vector: bool, value: str) -> str:
        kind, whole = integer(bits, vector), ""
        size = ir.get(f"and {kind} {value}, {fixed((1 << (bits - 1)) - 1, bits, vector)}")
        for low, high in ranges:
            offset = ir.get(f"sub {kind} {size}, {fixed(low, bits, vector)}")
            inside = ir.get(f"icmp ule {kind} {offset}, {fixed(high - low, bits, vector)}")
            whole = ir.get(f"or {integer(1, vector)} {whole}, {inside}") if whole else inside
        return whole

    cx.apply(instruction.operands[1:2], bits, 1, build)


HANDLERS = {
    "sqrt": square_root,
    "rcp": reciprocal,
    "rsqrt": reciprocal,
    "copysign": copy_sign,
    "testp": test_property,
}
