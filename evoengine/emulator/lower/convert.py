"""cvt: between integers, floats and halves."""

from __future__ import annotations

from evoengine.emulator.analyse.uniform import UNIFORM, Ramp
from evoengine.emulator.lower.arithmetic import constant, flush, widen_ramp
from evoengine.emulator.lower.context import Context, Value
from evoengine.emulator.lower.emitter import floating, integer
from evoengine.emulator.ptx.program import TYPE_BITS, Instruction, Register

INTEGERS = frozenset(("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"))
_TO_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}


def convert(cx: Context, instruction: Instruction) -> None:
    """cvt.{rounding}.{ftz}.{sat}.to.from"""
    to, source = instruction.modifiers[-2], instruction.modifiers[-1]
    if to in INTEGERS and source in INTEGERS:
        _integers(cx, instruction, to, source)
    elif to in INTEGERS and source in ("f32", "f64"):
        _float_to_integer(cx, instruction, to, source)
    elif to in ("f32", "f64") and source in INTEGERS:
        _integer_to_float(cx, instruction, to, source)
    elif to in ("f32", "f64") and source in ("f32", "f64"):
        _floats(cx, instruction, to, source)
    elif to == "f32" and source in ("f16", "bf16"):
        cx.apply(instruction.operands[1:2], 16, 32, lambda vector, value: widen_half(cx, vector, value, source))
    elif to in ("f16", "bf16") and source == "f32" and _is_plain(instruction):
        cx.apply(instruction.operands[1:2], 32, 16, lambda vector, value: narrow_to_half(cx, vector, value, to))
    elif to in ("f16x2", "bf16x2") and source == "f32" and _is_plain(instruction):
        _two_halves(cx, instruction, to.removesuffix("x2"))
    else:
        raise cx.unsupported()


def _is_plain(instruction: Instruction) -> bool:
    return not {"rz", "rm", "rp", "rs", "relu", "sat", "satfinite"} & set(instruction.modifiers)


def _integers(cx: Context, instruction: Instruction, to: str, source: str) -> None:
    target, (wide, bits) = instruction.operands[0], (TYPE_BITS[to], TYPE_BITS[source])
    value = cx.read(instruction.operands[1], bits)
    signed = source.startswith("s")
    shape = cx.shape(target.name) if isinstance(target, Register) else UNIFORM
    if isinstance(shape, Ramp):
        if wide < bits:
            value = cx._adapt(value, wide)
        cx.write(target, Value(shape, widen_ramp(cx, value, wide, signed), wide))
        return
    if instruction.has("sat"):
        value = cx.compute([value], bits, lambda vector, text: _clamp_integer(cx, vector, text, to, source))
    whole = Value(value.shape, value.text, bits)
    if whole.shape is not UNIFORM:
        whole = Value(cx.compute([whole], bits, lambda _, text: text).shape, cx.spread(whole), bits)
    cx.write(target, cx._adapt(whole, wide, signed), signed=to.startswith("s"))


def _clamp_integer(cx: Context, vector: bool, text: str, to: str, source: str) -> str:
    """Into the range of `to`, still as `source`."""
    bits, wide = TYPE_BITS[source], TYPE_BITS[to]
    low = -(1 << (wide - 1)) if to.startswith("s") else 0
    high = (1 << (wide - 1)) - 1 if to.startswith("s") else (1 << wide) - 1
    kind = integer(bits, vector)

    def fixed(number: int) -> str:
        number &= (1 << bits) - 1
        number = number - (1 << bits) if number >> (bits - 1) else number
        return f"splat (i{bits} {number})" if vector else str(number)

    if source.startswith("s"):
        top = (1 << (bits - 1)) - 1
        text = cx.ir.intrinsic("smax", kind, text, fixed(max(low, -(1 << (bits - 1)))))
        return cx.ir.intrinsic("smin", kind, text, fixed(min(high, top)))
    return cx.ir.intrinsic("umin", kind, text, fixed(min(high, (1 << bits) - 1)))


def _float_to_integer(cx: Context, instruction: Instruction, to: str, source: str) -> None:
    """Saturates; NaN becomes 0 (PTX ISA, 9.7.9.21 cvt)."""
    bits, wide, ir = TYPE_BITS[source], TYPE_BITS[to], cx.ir
    rounding = next((name for name in _TO_INTEGRAL if instruction.has(name)), "rzi")

    def build(vector: bool, value: str) -> str:
        kind = floating(source, vector)
        number = cx.as_float(value, source, vector, bits)
        if instruction.has("ftz") and source == "f32":
            number = flush(cx, vector, number)
        if rounding != "rzi":
            number = ir.intrinsic(_TO_INTEGRAL[rounding], kind, number)
        name = "fptosi.sat" if to.startswith("s") else "fptoui.sat"
        result = integer(wide, vector)
        full = f"@llvm.{name}.{_suffix(wide, vector)}.{'v32' if vector else ''}{source}"
        ir.declarations[full] = f"declare {result} {full}({kind})"
        return ir.get(f"call {result} {full}({kind} {number})")

    cx.apply(instruction.operands[1:2], bits, wide, build, signed=to.startswith("s"))


def _suffix(bits: int, vector: bool) -> str:
    return f"v32i{bits}" if vector else f"i{bits}"


def _integer_to_float(cx: Context, instruction: Instruction, to: str, source: str) -> None:
    if {"rz", "rm", "rp"} & set(instruction.modifiers):
        raise cx.unsupported("a rounding other than to nearest")
    bits, wide = TYPE_BITS[source], TYPE_BITS[to]
    how = "sitofp" if source.startswith("s") else "uitofp"

    def build(vector: bool, value: str) -> str:
        number = cx.ir.get(f"{how} {integer(bits, vector)} {value} to {floating(to, vector)}")
        return cx.as_integer(number, to, vector)

    cx.apply(instruction.operands[1:2], bits, wide, build)


def _floats(cx: Context, instruction: Instruction, to: str, source: str) -> None:
    bits, wide, ir = TYPE_BITS[source], TYPE_BITS[to], cx.ir
    rounding = next((name for name in _TO_INTEGRAL if instruction.has(name)), None)
    if {"rz", "rm", "rp"} & set(instruction.modifiers):
        raise cx.unsupported("a rounding other than to nearest")

    def build(vector: bool, value: str) -> str:
        number = cx.as_float(value, source, vector, bits)
        if instruction.has("ftz") and source == "f32":
            number = flush(cx, vector, number)
        if rounding:
            number = ir.intrinsic(_TO_INTEGRAL[rounding], floating(source, vector), number)
        if wide != bits:
            number = ir.get(f"{'fpext' if wide > bits else 'fptrunc'} {floating(source, vector)} {number} to {floating(to, vector)}")
        if instruction.has("sat"):
            low = ir.intrinsic("maxnum", floating(to, vector), number, constant(0.0, to, vector))
            number = ir.intrinsic("minnum", floating(to, vector), low, constant(1.0, to, vector))
        if instruction.has("ftz") and to == "f32":
            number = flush(cx, vector, number)
        return cx.as_integer(number, to, vector)

    cx.apply(instruction.operands[1:2], bits, wide, build)


def widen_half(cx: Context, vector: bool, value: str, source: str) -> str:
    """16-bit floating point as the bits of f32; exact."""
    ir = cx.ir
    if source == "bf16":
        wide = ir.get(f"zext {integer(16, vector)} {value} to {integer(32, vector)}")
        return ir.get(f"shl {integer(32, vector)} {wide}, {'splat (i32 16)' if vector else '16'}")
    number = ir.get(f"fpext {floating('f16', vector)} {cx.as_float(value, 'f16', vector, 16)} to {floating('f32', vector)}")
    return cx.as_integer(number, "f32", vector)


def narrow_to_half(cx: Context, vector: bool, value: str, to: str) -> str:
    """The bits of f32 rounded to nearest even into 16; NaN becomes 0x7fff."""
    ir, wide, kind = cx.ir, integer(32, vector), integer(16, vector)
    number = cx.as_float(value, "f32", vector, 32)
    if to == "bf16":

        def fixed(amount: int) -> str:
            return f"splat (i32 {amount})" if vector else str(amount)

        odd = ir.get(f"and {wide} {ir.get(f'lshr {wide} {value}, {fixed(16)}')}, {fixed(1)}")
        rounded = ir.get(f"add {wide} {ir.get(f'add {wide} {value}, {fixed(0x7FFF)}')}, {odd}")
        narrow = ir.get(f"trunc {wide} {ir.get(f'lshr {wide} {rounded}, {fixed(16)}')} to {kind}")
    else:
        narrow = cx.as_integer(ir.get(f"fptrunc {floating('f32', vector)} {number} to {floating('f16', vector)}"), "f16", vector)
    wrong = ir.get(f"fcmp uno {floating('f32', vector)} {number}, {number}")
    nan = "splat (i16 32767)" if vector else "32767"
    return ir.get(f"select {integer(1, vector)} {wrong}, {kind} {nan}, {kind} {narrow}")


def _two_halves(cx: Context, instruction: Instruction, to: str) -> None:
    """cvt.rn.f16x2.f32 d, a, b: a into the upper half, b into the lower."""
    ir = cx.ir

    def build(vector: bool, upper: str, lower: str) -> str:
        high, low = (narrow_to_half(cx, vector, item, to) for item in (upper, lower))
        kind = integer(32, vector)
        high, low = (ir.get(f"zext {integer(16, vector)} {item} to {kind}") for item in (high, low))
        shifted = ir.get(f"shl {kind} {high}, {'splat (i32 16)' if vector else '16'}")
        return ir.get(f"or {kind} {shifted}, {low}")

    cx.apply(instruction.operands[1:3], 32, 32, build)


HANDLERS = {"cvt": convert}
