"""Integer and floating point arithmetic: add to fma, min and max, division, and the
extended-precision pairs.
"""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import Affine
from evoengine.emulator.lower.context import LoweringContext, Value, literal
from evoengine.emulator.lower.emitter import LANES, floating, integer
from evoengine.emulator.lower.extended_precision import with_carry
from evoengine.emulator.lower.floats import (
    canonical_nan,
    fixed,
    float_operands,
    float_operation,
    float_result,
    flush_bits,
    is_float,
    is_half,
)
from evoengine.emulator.lower.half import half_arithmetic
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction, Operand, Register

PACKED = ("u16x2", "s16x2")


def add_or_subtract(cx: LoweringContext, instruction: Instruction) -> None:
    """add, sub of every type."""
    if is_half(instruction.type):
        half_arithmetic(cx, instruction)
    elif is_float(instruction.type):
        float_operation(cx, instruction, "f" + instruction.op, 2)
    elif _affine_of(cx, instruction.operands[0]):
        _add_affine(cx, instruction)
    elif instruction.has("sat"):
        _integer_intrinsic(cx, instruction, f"s{instruction.op}.sat")
    elif instruction.has("cc"):
        with_carry(cx, instruction)
    else:
        _integer_operation(cx, instruction, instruction.op)


def _affine_of(cx: LoweringContext, operand: Operand) -> Affine | None:
    variance = cx.variance(operand.name) if isinstance(operand, Register) else None
    return variance if isinstance(variance, Affine) else None


def _add_affine(cx: LoweringContext, instruction: Instruction) -> None:
    bits = TYPE_BITS[instruction.type]
    a, b = (cx.read(operand, bits) for operand in instruction.operands[1:3])
    text = cx.ir.get(f"{instruction.op} i{bits} {a.text}, {b.text}")
    variance = _affine_of(cx, instruction.operands[0])
    assert variance is not None
    cx.write(instruction.operands[0], Value(variance, text, bits))


def _integer_operation(cx: LoweringContext, instruction: Instruction, operation: str) -> None:
    bits, packed = TYPE_BITS[instruction.type], instruction.type in PACKED

    def build(vector: bool, a: str, b: str) -> str:
        kind, (x, y) = _elements(cx, vector, packed, bits, (a, b))
        return cx.ir.bitcast(cx.ir.get(f"{operation} {kind} {x}, {y}"), kind, integer(bits, vector))

    cx.apply(instruction.operands[1:3], bits, bits, build)


def _elements(
    cx: LoweringContext, vector: bool, packed: bool, bits: int, values: tuple[str, ...]
) -> tuple[str, list[str]]:
    """The type in which an integer instruction computes, and its operands in that type; packed
    pairs of 16 bits have twice as many elements.
    """
    if not packed:
        return integer(bits, vector), list(values)
    kind = f"<{2 * LANES if vector else 2} x i16>"
    return kind, [
        cx.ir.get(f"bitcast {integer(bits, vector)} {value} to {kind}") for value in values
    ]


def _integer_intrinsic(cx: LoweringContext, instruction: Instruction, name: str) -> None:
    bits, packed = TYPE_BITS[instruction.type], instruction.type in PACKED

    def build(vector: bool, *values: str) -> str:
        kind, operands = _elements(cx, vector, packed, bits, values)
        text = cx.ir.intrinsic(name, kind, *operands)
        if instruction.has("relu"):
            text = cx.ir.intrinsic("smax", kind, text, "zeroinitializer" if "x" in kind else "0")
        return cx.ir.bitcast(text, kind, integer(bits, vector))

    cx.apply(instruction.operands[1:3], bits, bits, build)


def multiply(cx: LoweringContext, instruction: Instruction) -> None:
    """mul, mad, mul24, mad24: the low half, the high half, or all of it."""
    if is_half(instruction.type):
        half_arithmetic(cx, instruction)
    elif is_float(instruction.type):
        if instruction.op == "mad":
            fused(cx, instruction)
        else:
            float_operation(cx, instruction, "fmul", 2)
    elif instruction.has("cc"):
        with_carry(cx, instruction)
    elif _affine_of(cx, instruction.operands[0]):
        _multiply_affine(cx, instruction)
    else:
        _multiply_integers(cx, instruction)


def _multiply_affine(cx: LoweringContext, instruction: Instruction) -> None:
    bits = TYPE_BITS[instruction.type]
    wide = bits * 2 if instruction.has("wide") else bits
    values = [cx.read(operand, bits) for operand in instruction.operands[1:3]]
    signed = instruction.type.startswith("s")
    texts = [widen_affine(cx, value, wide, signed) for value in values]
    text = cx.ir.get(f"mul i{wide} {texts[0]}, {texts[1]}")
    if instruction.op == "mad":
        added = cx.read(instruction.operands[3], wide)
        text = cx.ir.get(f"add i{wide} {text}, {added.text}")
    variance = _affine_of(cx, instruction.operands[0])
    assert variance is not None
    cx.write(instruction.operands[0], Value(variance, text, wide))


def widen_affine(cx: LoweringContext, value: Value, bits: int, signed: bool) -> str:
    """The base of an affine value, or a scalar, extended to `bits` bits.

    If some lane of an unsigned affine value wraps, the lanes begin at a negative index: lanes whose
    value is not negative must not carry into the upper half, so the base is sign-extended.
    """
    if (
        value.bits >= bits
        or value.text[0] != "%"
        or signed
        or not isinstance(value.variance, Affine)
        or value.variance.stride <= 0
    ):
        return cx.resized(value, bits, signed).text
    ir, kind = cx.ir, f"i{value.bits}"
    last = ir.get(
        f"add {kind} {value.text}, {literal((LANES - 1) * value.variance.stride, value.bits)}"
    )
    wraps = ir.get(f"icmp ult {kind} {last}, {value.text}")
    below, above = (
        ir.get(f"sext {kind} {value.text} to i{bits}"),
        ir.get(f"zext {kind} {value.text} to i{bits}"),
    )
    return ir.get(f"select i1 {wraps}, i{bits} {below}, i{bits} {above}")


def _multiply_integers(cx: LoweringContext, instruction: Instruction) -> None:
    bits, ir = TYPE_BITS[instruction.type], cx.ir
    signed = instruction.type.startswith("s")
    high, wide = instruction.has("hi"), instruction.has("wide")
    result = bits * 2 if wide else bits
    narrow24 = instruction.op in ("mul24", "mad24")
    how = "sext" if signed else "zext"

    def product(vector: bool, a: str, b: str) -> str:
        if narrow24:
            a, b = (_low_24(cx, vector, item, signed) for item in (a, b))
        if not (high or wide):
            return ir.get(f"mul {integer(bits, vector)} {a}, {b}")
        small, large = integer(bits, vector), integer(2 * bits, vector)
        a, b = (ir.get(f"{how} {small} {item} to {large}") for item in (a, b))
        whole = ir.get(f"mul {large} {a}, {b}")
        if wide:
            return whole
        by = 16 if narrow24 else bits
        shift = f"splat (i{2 * bits} {by})" if vector else str(by)
        return ir.get(f"trunc {large} {ir.get(f'lshr {large} {whole}, {shift}')} to {small}")

    def build(vector: bool, a: str, b: str, *added: str) -> str:
        text = product(vector, a, b)
        if not added:
            return text
        if instruction.has("sat"):
            return ir.intrinsic("sadd.sat", integer(result, vector), text, added[0])
        return ir.get(f"add {integer(result, vector)} {text}, {added[0]}")

    sources = (
        instruction.operands[1:4]
        if instruction.op in ("mad", "mad24")
        else instruction.operands[1:3]
    )
    cx.apply(sources, [bits, bits, result][: len(sources)], result, build)


def _low_24(cx: LoweringContext, vector: bool, value: str, signed: bool) -> str:
    kind, by = integer(32, vector), "splat (i32 8)" if vector else "8"
    return cx.ir.get(
        f"{'ashr' if signed else 'lshr'} {kind} {cx.ir.get(f'shl {kind} {value}, {by}')}, {by}"
    )


def fused(cx: LoweringContext, instruction: Instruction) -> None:
    """fma: one rounding."""
    if is_half(instruction.type):
        half_arithmetic(cx, instruction)
    else:
        float_operation(cx, instruction, "@fma", 3)


def divide(cx: LoweringContext, instruction: Instruction) -> None:
    """div, rem. By zero both give all ones, as an H200 does."""
    if is_float(instruction.type):
        float_operation(cx, instruction, "fdiv", 2)
        return
    bits, ir = TYPE_BITS[instruction.type], cx.ir
    signed = instruction.type.startswith("s")
    name = ("s" if signed else "u") + instruction.op

    def build(vector: bool, a: str, b: str) -> str:
        kind, flag = integer(bits, vector), integer(1, vector)
        zero = f"splat (i{bits} 0)" if vector else "0"
        ones = f"splat (i{bits} -1)" if vector else "-1"
        one = f"splat (i{bits} 1)" if vector else "1"
        is_zero = ir.get(f"icmp eq {kind} {b}, {zero}")
        unsafe = is_zero
        if signed:  # the most negative number by -1 traps on x86
            unsafe = ir.get(f"or {flag} {is_zero}, {ir.get(f'icmp eq {kind} {b}, {ones}')}")
        safe = ir.get(f"select {flag} {unsafe}, {kind} {one}, {kind} {b}")
        result = ir.get(f"{name} {kind} {a}, {safe}")
        if signed:
            by_minus_one = ir.get(f"sub {kind} {zero}, {a}") if instruction.op == "div" else zero
            is_minus_one = ir.get(f"icmp eq {kind} {b}, {ones}")
            result = ir.get(f"select {flag} {is_minus_one}, {kind} {by_minus_one}, {kind} {result}")
        return ir.get(f"select {flag} {is_zero}, {kind} {ones}, {kind} {result}")

    cx.apply(instruction.operands[1:3], bits, bits, build)


def minimum_or_maximum(cx: LoweringContext, instruction: Instruction) -> None:
    """min, max: of floats the one that is a number; -0 is less than +0."""
    if is_half(instruction.type):
        half_arithmetic(cx, instruction)
        return
    if not is_float(instruction.type):
        _integer_intrinsic(
            cx, instruction, ("s" if instruction.type.startswith("s") else "u") + instruction.op
        )
        return
    bits, ir = TYPE_BITS[instruction.type], cx.ir
    name = f"{instruction.op}imum" + ("" if instruction.has("NaN") else "num")

    def build(vector: bool, *values: str) -> str:
        kind, found = (
            floating(instruction.type, vector),
            float_operands(cx, instruction, vector, values),
        )
        if instruction.has("xorsign"):
            found = [ir.intrinsic("fabs", kind, item) for item in found]
        text, *others = found
        for other in others:
            text = ir.intrinsic(name, kind, text, other)
        result = canonical_nan(
            cx, instruction.type, vector, float_result(cx, instruction, vector, text)
        )
        return _with_signs(cx, vector, result, values) if instruction.has("xorsign") else result

    cx.apply(instruction.operands[1:], bits, bits, build)


def _with_signs(cx: LoweringContext, vector: bool, size: str, values: tuple[str, ...]) -> str:
    """.xorsign.abs of f32: the signs of the operands, joined by xor, on the smaller or larger
    magnitude; NaN stays.
    """
    kind, ir = integer(32, vector), cx.ir
    signs = ir.get(
        f"and {kind} {ir.get(f'xor {kind} {values[0]}, {values[1]}')}, {fixed(1 << 31, 32, vector)}"
    )
    is_nan = ir.get(f"icmp ugt {kind} {size}, {fixed(0x7F800000, 32, vector)}")
    return ir.get(
        f"select {integer(1, vector)} {is_nan}, {kind} {size}, {kind}"
        f" {ir.get(f'or {kind} {size}, {signs}')}"
    )


def negate_or_absolute(cx: LoweringContext, instruction: Instruction) -> None:
    """neg, abs: of floats by the sign bit."""
    bits, ir, type_ = TYPE_BITS[instruction.type], cx.ir, instruction.type
    floats = {
        "f16": 0x8000,
        "bf16": 0x8000,
        "f16x2": 0x80008000,
        "bf16x2": 0x80008000,
        "f32": 1 << 31,
        "f64": 1 << 63,
    }

    def build(vector: bool, value: str) -> str:
        kind = integer(bits, vector)
        if type_ in floats:
            sign = floats[type_]
            mask = literal(sign if instruction.op == "neg" else ~sign, bits)
            mask = f"splat (i{bits} {mask})" if vector else mask
            text = ir.get(f"{'xor' if instruction.op == 'neg' else 'and'} {kind} {value}, {mask}")
            return flush_bits(cx, vector, text, type_) if instruction.has("ftz") else text
        if instruction.op == "abs":
            return ir.intrinsic("abs", kind, value, also="i1 false")
        return ir.get(f"sub {kind} {'zeroinitializer' if vector else '0'}, {value}")

    cx.apply(instruction.operands[1:2], bits, bits, build)


HANDLERS = {
    "add": add_or_subtract,
    "sub": add_or_subtract,
    **dict.fromkeys(("mul", "mad", "mul24", "mad24"), multiply),
    "fma": fused,
    "div": divide,
    "rem": divide,
    "min": minimum_or_maximum,
    "max": minimum_or_maximum,
    "neg": negate_or_absolute,
    "abs": negate_or_absolute,
}
