"""cvt: between integers, f32 and f64; narrow_floats.py has the narrower floating-point formats."""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import UNIFORM, VARYING, Affine
from evoengine.emulator.lower.arithmetic import widen_affine
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import floating, integer
from evoengine.emulator.lower.floats import DIRECTED, fixed, flush, flush_bits, is_float, saturate
from evoengine.emulator.lower.integers import as_64_bits, read_integer
from evoengine.emulator.lower.narrow_floats import FORMATS, convert_narrow
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction, Register

INTEGERS = frozenset(("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"))
TO_INTEGRAL = {"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}
_KNOWN = frozenset(("rn", "ftz", "sat", *TO_INTEGRAL, *DIRECTED))


def convert(cx: LoweringContext, instruction: Instruction) -> None:
    """cvt.{rounding}.{ftz}.{sat}.to.from"""
    to, source = instruction.modifiers[-2], instruction.modifiers[-1]
    if instruction.has("pack"):
        _pack(cx, instruction)
    elif to in FORMATS or source in FORMATS:
        convert_narrow(cx, instruction, to, source)
    elif not set(instruction.modifiers[:-2]) <= _KNOWN:
        raise cx.unsupported()
    elif to in INTEGERS and source in INTEGERS:
        _integers(cx, instruction, to, source)
    elif to in INTEGERS and is_float(source):
        _float_to_integer(cx, instruction, to, source)
    elif is_float(to) and source in INTEGERS:
        _integer_to_float(cx, instruction, to, source)
    elif is_float(to) and is_float(source):
        _floats(cx, instruction, to, source)
    else:
        raise cx.unsupported()


def _integers(cx: LoweringContext, instruction: Instruction, to: str, source: str) -> None:
    target, (wide, bits) = instruction.operands[0], (TYPE_BITS[to], TYPE_BITS[source])
    value = cx.read(instruction.operands[1], bits)
    signed = source.startswith("s")
    variance = cx.variance(target.name) if isinstance(target, Register) else UNIFORM
    if isinstance(variance, Affine):
        if wide < bits:
            value = cx.resized(value, wide)
        cx.write(target, Value(variance, widen_affine(cx, value, wide, signed), wide))
        return
    if instruction.has("sat"):
        value = cx.compute(
            [value], bits, lambda vector, text: clamp_integer(cx, vector, text, to, source)
        )
    # the base of an affine value must not be truncated or extended alone
    if value.variance is not UNIFORM:
        value = Value(VARYING, cx.as_vector(value), bits)
    cx.write(target, cx.resized(value, wide, signed), signed=to.startswith("s"))


def clamp_integer(cx: LoweringContext, vector: bool, text: str, to: str, source: str) -> str:
    """Into the range of `to`, still as `source`."""
    bits, wide = TYPE_BITS[source], TYPE_BITS[to]
    low = -(1 << (wide - 1)) if to.startswith("s") else 0
    high = (1 << (wide - 1)) - 1 if to.startswith("s") else (1 << wide) - 1
    kind = integer(bits, vector)
    if source.startswith("s"):
        top = (1 << (bits - 1)) - 1
        text = cx.ir.intrinsic(
            "smax", kind, text, fixed(max(low, -(1 << (bits - 1))), bits, vector)
        )
        return cx.ir.intrinsic("smin", kind, text, fixed(min(high, top), bits, vector))
    return cx.ir.intrinsic("umin", kind, text, fixed(min(high, (1 << bits) - 1), bits, vector))


def _pack(cx: LoweringContext, instruction: Instruction) -> None:
    """cvt.pack.sat.to.s32.b32 d, a, b, c: a and b saturated into the low bits, c shifted up;
    without c zeros.
    """
    third = len(instruction.operands) > 3
    to = instruction.modifiers[-3] if third else instruction.modifiers[-2]
    source, bits, ir = "s32", TYPE_BITS[to], cx.ir
    if bits < 8 or not instruction.has("sat"):
        raise cx.unsupported()

    def build(vector: bool, a: str, b: str, *above: str) -> str:
        kind, by = integer(32, vector), fixed(bits, 32, vector)
        low = fixed((1 << bits) - 1, 32, vector)
        a, b = (
            ir.get(f"and {kind} {clamp_integer(cx, vector, item, to, source)}, {low}")
            for item in (a, b)
        )
        text = ir.get(f"or {kind} {ir.get(f'shl {kind} {a}, {by}')}, {b}")
        for item in above:
            text = ir.get(
                f"or {kind} {ir.get(f'shl {kind} {item}, {fixed(2 * bits, 32, vector)}')}, {text}"
            )
        return text

    cx.apply(instruction.operands[1:], 32, 32, build)


def _float_to_integer(cx: LoweringContext, instruction: Instruction, to: str, source: str) -> None:
    """Saturates. NaN becomes 0, or the top bit alone where the source or the result has 64 bits
    (PTX ISA, 9.7.9.21 cvt).
    """
    bits, wide, ir = TYPE_BITS[source], TYPE_BITS[to], cx.ir
    rounding = next((name for name in TO_INTEGRAL if instruction.has(name)), "rzi")

    def build(vector: bool, value: str) -> str:
        kind = floating(source, vector)
        number = cx.as_float(value, source, vector, bits)
        if instruction.has("ftz") and source == "f32":
            number = flush(cx, vector, number)
        if rounding != "rzi":
            number = ir.intrinsic(TO_INTEGRAL[rounding], kind, number)
        name = "fptosi.sat" if to.startswith("s") else "fptoui.sat"
        result = integer(wide, vector)
        full = f"@llvm.{name}.{_suffix(wide, vector)}.{'v32' if vector else ''}{source}"
        ir.declarations[full] = f"declare {result} {full}({kind})"
        found = ir.get(f"call {result} {full}({kind} {number})")
        if bits < 64 and wide < 64:
            return found
        wrong = ir.get(f"fcmp uno {kind} {number}, {number}")
        return ir.get(
            f"select {integer(1, vector)} {wrong}, {result} {fixed(1 << (wide - 1), wide, vector)},"
            f" {result} {found}"
        )

    cx.apply(instruction.operands[1:2], bits, wide, build, signed=to.startswith("s"))


def _suffix(bits: int, vector: bool) -> str:
    return f"v32i{bits}" if vector else f"i{bits}"


def _integer_to_float(cx: LoweringContext, instruction: Instruction, to: str, source: str) -> None:
    bits, wide = TYPE_BITS[source], TYPE_BITS[to]
    value = read_integer(cx, instruction, source)
    mode = next((item for item in DIRECTED if instruction.has(item)), None)
    if mode:
        text, type_ = as_64_bits(cx, value, source)
        (found,) = cx.call_lanes(f"ev_cvt_{mode}_{to}_{type_}", [(64, text)], [wide])
        cx.write(instruction.operands[0], Value(VARYING, found, wide))
        return
    how = "sitofp" if source.startswith("s") else "uitofp"

    def build(vector: bool, item: str) -> str:
        number = cx.ir.get(f"{how} {integer(bits, vector)} {item} to {floating(to, vector)}")
        return cx.as_integer(number, to, vector)

    cx.write(instruction.operands[0], cx.compute([value], wide, build))


def _floats(cx: LoweringContext, instruction: Instruction, to: str, source: str) -> None:
    bits, wide, ir = TYPE_BITS[source], TYPE_BITS[to], cx.ir
    rounding = next((name for name in TO_INTEGRAL if instruction.has(name)), None)
    mode = next((item for item in DIRECTED if instruction.has(item)), None)
    value = cx.read(instruction.operands[1], bits)
    if mode and wide < bits:
        (found,) = cx.call_lanes(
            f"ev_cvt_{mode}_{to}_{source}", [(bits, cx.as_vector(value))], [wide]
        )
        value, bits, source = Value(VARYING, found, wide), wide, to

    def build(vector: bool, text: str) -> str:
        if instruction.has("ftz") and source == "f32":
            text = flush_bits(cx, vector, text, "f32")
        number = cx.as_float(text, source, vector, bits)
        if rounding:
            number = ir.intrinsic(TO_INTEGRAL[rounding], floating(source, vector), number)
        if wide != bits:
            number = ir.get(
                f"{'fpext' if wide > bits else 'fptrunc'} {floating(source, vector)} {number} to"
                f" {floating(to, vector)}"
            )
        if instruction.has("sat"):
            number = saturate(cx, to, vector, number)
        if instruction.has("ftz") and to == "f32":
            number = flush(cx, vector, number)
        return cx.as_integer(number, to, vector)

    cx.write(instruction.operands[0], cx.compute([value], wide, build))


HANDLERS = {"cvt": convert}
