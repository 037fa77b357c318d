"""Bitwise logic, shifts, counts of bits and moves."""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import UNIFORM, VARYING, Affine
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import integer
from evoengine.emulator.ptx.syntax import (
    TYPE_BITS,
    Instruction,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Vector,
)


def bitwise(cx: LoweringContext, instruction: Instruction) -> None:
    """and, or, xor, not of predicates and integers."""
    bits = TYPE_BITS[instruction.type]
    target = instruction.operands[0]
    variance = cx.variance(target.name) if isinstance(target, Register) else UNIFORM
    if instruction.op == "not":
        ones = "true" if bits == 1 else "-1"

        def invert(vector: bool, a: str) -> str:
            return cx.ir.get(
                f"xor {integer(bits, vector)} {a}, {f'splat (i{bits} {ones})' if vector else ones}"
            )

        cx.apply(instruction.operands[1:2], bits, bits, invert)
        return
    values = [cx.read(operand, bits) for operand in instruction.operands[1:3]]
    masked = (
        instruction.op == "and"
        and isinstance(values[0].variance, Affine)
        and variance is not VARYING
    )
    # of an aligned base: threadIdx.x & 31 is the lane, & ~31 is uniform
    if masked or isinstance(variance, Affine):
        cx.write(
            target,
            Value(
                variance,
                cx.ir.get(f"{instruction.op} i{bits} {values[0].text}, {values[1].text}"),
                bits,
            ),
        )
    else:

        def build(vector: bool, a: str, b: str) -> str:
            return cx.ir.get(f"{instruction.op} {integer(bits, vector)} {a}, {b}")

        cx.write(target, cx.compute(values, bits, build))


def shift(cx: LoweringContext, instruction: Instruction) -> None:
    """shl, shr: amounts beyond the width give 0, or the sign."""
    bits, ir = TYPE_BITS[instruction.type], cx.ir
    target = instruction.operands[0]
    value, by = cx.read(instruction.operands[1], bits), cx.read(instruction.operands[2], 32)
    variance = cx.variance(target.name) if isinstance(target, Register) else VARYING
    signed = instruction.type.startswith("s")
    if isinstance(value.variance, Affine) and variance is not VARYING:
        how = "shl" if instruction.op == "shl" else "lshr"
        amount = cx.resized(by, bits).text
        cx.write(target, Value(variance, ir.get(f"{how} i{bits} {value.text}, {amount}"), bits))
        return
    how = "shl" if instruction.op == "shl" else "ashr" if signed else "lshr"

    def build(vector: bool, a: str, amount: str) -> str:
        kind, narrow = integer(bits, vector), integer(32, vector)
        last = f"splat (i32 {bits - 1})" if vector else str(bits - 1)
        within = ir.intrinsic("umin", narrow, amount, last)
        same = within
        if bits != 32:
            same = ir.get(f"{'zext' if bits > 32 else 'trunc'} {narrow} {within} to {kind}")
        text = ir.get(f"{how} {kind} {a}, {same}")
        if how == "ashr":
            return text
        beyond = ir.get(f"icmp ugt {narrow} {amount}, {last}")
        zero = "zeroinitializer" if vector else "0"
        return ir.get(f"select {integer(1, vector)} {beyond}, {kind} {zero}, {kind} {text}")

    if by.text.lstrip("-").isdigit() and 0 <= int(by.text) < bits:

        def plain(vector: bool, a: str) -> str:
            amount = f"splat (i{bits} {by.text})" if vector else by.text
            return ir.get(f"{how} {integer(bits, vector)} {a}, {amount}")

        cx.write(target, cx.compute([value], bits, plain))
        return
    cx.write(target, cx.compute([value, by], bits, build))


def funnel_shift(cx: LoweringContext, instruction: Instruction) -> None:
    """shf.l, shf.r over a pair of registers, .wrap or .clamp."""
    ir = cx.ir
    left = instruction.has("l")

    def build(vector: bool, low: str, high: str, by: str) -> str:
        kind = integer(32, vector)
        if instruction.has("wrap"):
            return ir.intrinsic("fshl" if left else "fshr", kind, high, low, by)
        limit = "splat (i32 32)" if vector else "32"
        amount = ir.intrinsic("umin", kind, by, limit)
        shifted = ir.intrinsic("fshl" if left else "fshr", kind, high, low, amount)
        whole = ir.get(f"icmp eq {kind} {amount}, {limit}")
        return ir.get(
            f"select {integer(1, vector)} {whole}, {kind} {low if left else high}, {kind} {shifted}"
        )

    cx.apply(instruction.operands[1:4], 32, 32, build)


def move(cx: LoweringContext, instruction: Instruction) -> None:
    """mov: of a value, an address, or between a register and a vector of smaller ones."""
    target, source = instruction.operands[:2]
    if isinstance(target, Vector):
        _unpack(cx, target.items, source)
    elif isinstance(source, Vector):
        _pack(cx, target, source.items)
    elif isinstance(source, Symbol) and isinstance(target, Register):
        cx.write(target, cx.read(source, 64))
    else:
        cx.write(target, cx.read(source, TYPE_BITS[instruction.type]))


def _unpack(cx: LoweringContext, targets: tuple[Operand, ...], source: Operand) -> None:
    widths = [TYPE_BITS[cx.registers[item.name]] for item in targets if isinstance(item, Register)]
    total = widths[0] * len(targets)
    value = cx.read(source, total)
    for place, target in enumerate(targets):
        if isinstance(target, Sink):
            continue

        def part(vector: bool, whole: str, place: int = place) -> str:
            kind, by = integer(total, vector), place * widths[0]
            low = (
                cx.ir.get(f"lshr {kind} {whole}, {f'splat (i{total} {by})' if vector else by}")
                if by
                else whole
            )
            return cx.ir.get(f"trunc {kind} {low} to {integer(widths[0], vector)}")

        cx.write(target, cx.compute([value], widths[0], part))


def _pack(cx: LoweringContext, target: Operand, sources: tuple[Operand, ...]) -> None:
    total = TYPE_BITS[cx.instruction.type]
    bits = total // len(sources)

    def build(vector: bool, *parts: str) -> str:
        kind, whole = integer(total, vector), ""
        for place, part in enumerate(parts):
            by = f"splat (i{total} {place * bits})" if vector else str(place * bits)
            wide = cx.ir.get(f"zext {integer(bits, vector)} {part} to {kind}")
            wide = cx.ir.get(f"shl {kind} {wide}, {by}") if place else wide
            whole = cx.ir.get(f"or {kind} {whole}, {wide}") if whole else wide
        return whole

    cx.write(target, cx.compute([cx.read(item, bits) for item in sources], total, build))


def count_bits(cx: LoweringContext, instruction: Instruction) -> None:
    """popc, clz: the result has 32 bits."""
    bits = TYPE_BITS[instruction.type]

    def build(vector: bool, value: str) -> str:
        kind = integer(bits, vector)
        also = "i1 false" if instruction.op == "clz" else ""
        text = cx.ir.intrinsic(
            "ctlz" if instruction.op == "clz" else "ctpop", kind, value, also=also
        )
        return cx.ir.get(f"trunc {kind} {text} to {integer(32, vector)}") if bits == 64 else text

    cx.apply(instruction.operands[1:2], bits, 32, build)


def reverse_bits(cx: LoweringContext, instruction: Instruction) -> None:
    """brev."""
    bits = TYPE_BITS[instruction.type]
    cx.apply(
        instruction.operands[1:2],
        bits,
        bits,
        lambda vector, value: cx.ir.intrinsic("bitreverse", integer(bits, vector), value),
    )


def lookup_three(cx: LoweringContext, instruction: Instruction) -> None:
    """lop3: any function of three bits, as the sum of its minterms."""
    if isinstance(instruction.operands[0], Pair):
        raise cx.unsupported("a predicate beside the result")
    table = cx.read(instruction.operands[4], 32).text
    if not table.lstrip("-").isdigit():
        raise cx.unsupported("a table that is not a constant")
    ir = cx.ir

    def build(vector: bool, *values: str) -> str:
        kind, ones = integer(32, vector), "splat (i32 -1)" if vector else "-1"
        inverse = [ir.get(f"xor {kind} {value}, {ones}") for value in values]
        whole = "zeroinitializer" if vector else "0"
        for row in range(8):
            if not int(table) >> row & 1:
                continue
            term = ones
            for place, value in enumerate(values):
                term = ir.get(
                    f"and {kind} {term}, {value if row >> (2 - place) & 1 else inverse[place]}"
                )
            whole = ir.get(f"or {kind} {whole}, {term}")
        return whole

    cx.apply(instruction.operands[1:4], 32, 32, build)


HANDLERS = {
    **dict.fromkeys(("and", "or", "xor", "not"), bitwise),
    "shl": shift,
    "shr": shift,
    "shf": funnel_shift,
    "mov": move,
    "popc": count_bits,
    "clz": count_bits,
    "brev": reverse_bits,
    "lop3": lookup_three,
}
