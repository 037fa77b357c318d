"""Comparisons and what depends on one: setp, set, selp, slct."""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import UNIFORM, Affine
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import floating, integer
from evoengine.emulator.lower.floats import fixed, float_operands, flush_bits, is_float, is_half
from evoengine.emulator.lower.half import halves_of, joined, widen_half
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction, Operand, Pair, Register

_FLOAT_TESTS = {
    **{name: "o" + name for name in ("eq", "lt", "le", "gt", "ge")},
    "ne": "one",
    **{name + "u": "u" + name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "num": "ord",
    "nan": "uno",
}
_UNSIGNED_ONLY = {"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}
_YES = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}  # 1.0; of integers all bits


def compare(cx: LoweringContext, instruction: Instruction) -> None:
    """setp: one predicate, or p|q with q its opposite, combined with a third by and, or, xor; of
    pairs p for the low half, q the high.
    """
    bits, target = TYPE_BITS[instruction.type], instruction.operands[0]
    a, b = (cx.read(operand, bits) for operand in instruction.operands[1:3])
    if instruction.type.endswith("x2"):
        if not isinstance(target, Pair):
            raise cx.unsupported("pairs give two predicates")
        found = [
            _combined(
                cx,
                instruction,
                cx.compute(
                    [a, b],
                    1,
                    lambda vector, x, y, place=place: _half_test(
                        cx, instruction, vector, x, y, place
                    ),
                ),
            )
            for place in (0, 1)
        ]
        cx.write(target.first, found[0])
        cx.write(target.second, found[1])
        return
    first = target.first if isinstance(target, Pair) else target
    if (
        isinstance(first, Register)
        and cx.variance(first.name) is UNIFORM
        and isinstance(a.variance, Affine)
    ):
        result = Value(UNIFORM, _test(cx, instruction, instruction.type, False, a.text, b.text), 1)
    else:
        result = cx.compute(
            [a, b], 1, lambda vector, x, y: _test(cx, instruction, instruction.type, vector, x, y)
        )
    _write_predicates(cx, instruction, target, result)


def _write_predicates(
    cx: LoweringContext, instruction: Instruction, target: Operand, result: Value
) -> None:
    if not isinstance(target, Pair):
        cx.write(target, _combined(cx, instruction, result))
        return
    ones = "splat (i1 true)" if result.is_vector else "true"
    opposite = Value(
        result.variance, cx.ir.get(f"xor {integer(1, result.is_vector)} {result.text}, {ones}"), 1
    )
    both = _combined(cx, instruction, result), _combined(cx, instruction, opposite)
    cx.write(target.first, both[0])
    cx.write(target.second, both[1])


def _combined(cx: LoweringContext, instruction: Instruction, value: Value) -> Value:
    """The result of a comparison with the fourth operand, if the instruction has one."""
    how = next((item for item in ("and", "or", "xor") if instruction.has(item)), None)
    if how is None:
        return value
    third = cx.read(instruction.operands[3], 1)
    return cx.compute(
        [value, third], 1, lambda vector, x, y: cx.ir.get(f"{how} {integer(1, vector)} {x}, {y}")
    )


def _test(
    cx: LoweringContext, instruction: Instruction, type_: str, vector: bool, a: str, b: str
) -> str:
    name = instruction.modifiers[0]
    if is_half(type_):
        return _half_test(cx, instruction, vector, a, b, 0)
    if is_float(type_):
        x, y = float_operands(cx, instruction, vector, (a, b))
        return cx.ir.get(f"fcmp {_FLOAT_TESTS[name]} {floating(type_, vector)} {x}, {y}")
    if name not in ("eq", "ne"):
        name = _UNSIGNED_ONLY.get(name) or ("s" if type_.startswith("s") else "u") + name
    return cx.ir.get(f"icmp {name} {integer(TYPE_BITS[type_], vector)} {a}, {b}")


def _half_test(
    cx: LoweringContext, instruction: Instruction, vector: bool, a: str, b: str, place: int
) -> str:
    """The comparison of 16-bit floating point, of pairs at `place`: as f32, which holds them
    exactly.
    """
    type_ = instruction.type
    if instruction.has("ftz"):
        a, b = (flush_bits(cx, vector, item, type_) for item in (a, b))
    if type_.endswith("x2"):
        a, b = (halves_of(cx, vector, item)[place] for item in (a, b))
    single = type_.removesuffix("x2")
    x, y = (cx.as_float(widen_half(cx, vector, item, single), "f32", vector, 32) for item in (a, b))
    return cx.ir.get(
        f"fcmp {_FLOAT_TESTS[instruction.modifiers[0]]} {floating('f32', vector)} {x}, {y}"
    )


def set_value(cx: LoweringContext, instruction: Instruction) -> None:
    """set: all ones or 1.0 where the comparison holds; of pairs in each half."""
    source, result = instruction.modifiers[-1], instruction.modifiers[-2]
    bits, wide = TYPE_BITS[source], TYPE_BITS[result]
    values = [cx.read(operand, bits) for operand in instruction.operands[1:3]]
    signed = result.startswith("s")
    if not source.endswith("x2"):
        flag = _combined(
            cx,
            instruction,
            cx.compute(
                values, 1, lambda vector, x, y: _test(cx, instruction, source, vector, x, y)
            ),
        )
        cx.write(
            instruction.operands[0],
            cx.compute([flag], wide, lambda vector, item: _as_value(cx, vector, item, result)),
            signed,
        )
        return
    flags = []
    for place in (0, 1):
        tested = cx.compute(
            values,
            1,
            lambda vector, x, y, place=place: _half_test(cx, instruction, vector, x, y, place),
        )
        flags.append(_combined(cx, instruction, tested))
    each = result.removesuffix("x2") if result.endswith("x2") else "u16"

    def build(vector: bool, low: str, high: str) -> str:
        return joined(
            cx, vector, _as_value(cx, vector, low, each), _as_value(cx, vector, high, each)
        )

    cx.write(instruction.operands[0], cx.compute(flags, 32, build))


def _as_value(cx: LoweringContext, vector: bool, flag: str, type_: str) -> str:
    bits = TYPE_BITS[type_]
    kind = integer(bits, vector)
    return cx.ir.get(
        f"select {integer(1, vector)} {flag}, {kind} {fixed(_YES.get(type_, -1), bits, vector)},"
        f" {kind} {fixed(0, bits, vector)}"
    )


def select(cx: LoweringContext, instruction: Instruction) -> None:
    """selp d, a, b, p."""
    bits = TYPE_BITS[instruction.type]

    def build(vector: bool, a: str, b: str, p: str) -> str:
        kind = integer(bits, vector)
        return cx.ir.get(f"select {integer(1, vector)} {p}, {kind} {a}, {kind} {b}")

    cx.apply(instruction.operands[1:4], [bits, bits, 1], bits, build)


def select_by_sign(cx: LoweringContext, instruction: Instruction) -> None:
    """slct d, a, b, c: a where c >= 0; a subnormal c below zero counts as zero with .ftz."""
    result, by = instruction.modifiers[-2], instruction.modifiers[-1]
    bits, wide = TYPE_BITS[result], TYPE_BITS[by]

    def build(vector: bool, a: str, b: str, c: str) -> str:
        kind = integer(bits, vector)
        if by == "f32":
            (value,) = float_operands(cx, instruction, vector, (c,))
            flag = cx.ir.get(
                f"fcmp oge {floating(by, vector)} {value}, {'zeroinitializer' if vector else '0.0'}"
            )
        else:
            flag = cx.ir.get(f"icmp sge {integer(wide, vector)} {c}, {fixed(0, wide, vector)}")
        return cx.ir.get(f"select {integer(1, vector)} {flag}, {kind} {a}, {kind} {b}")

    cx.apply(instruction.operands[1:4], [bits, bits, wide], bits, build)


HANDLERS = {"setp": compare, "set": set_value, "selp": select, "slct": select_by_sign}
