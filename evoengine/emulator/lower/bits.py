"""Fields of bits and of bytes: bfe to bmsk, prmt, dp4a, sad."""

from __future__ import annotations

from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction

_PERMUTATIONS = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")  # the modes of prmt


def _fixed(number: int, bits: int, vector: bool) -> str:
    return f"splat (i{bits} {number})" if vector else str(number)


def _widened(cx: LoweringContext, text: str, bits: int, vector: bool) -> str:
    """A 32-bit operand in the width of the instruction."""
    if bits == 32:
        return text
    return cx.ir.get(f"zext {integer(32, vector)} {text} to {integer(bits, vector)}")


def extract(cx: LoweringContext, instruction: Instruction) -> None:
    """bfe d, a, position, length: PTX ISA's pseudo code; the sign of a field is its highest bit
    inside the register.
    """
    bits, ir, signed = TYPE_BITS[instruction.type], cx.ir, instruction.type.startswith("s")

    def build(vector: bool, value: str, position: str, length: str) -> str:
        kind, narrow, flag = integer(bits, vector), integer(32, vector), integer(1, vector)
        position = ir.get(f"and {narrow} {position}, {_fixed(255, 32, vector)}")
        length = ir.get(f"and {narrow} {length}, {_fixed(255, 32, vector)}")
        start = _widened(
            cx, ir.intrinsic("umin", narrow, position, _fixed(bits - 1, 32, vector)), bits, vector
        )
        shifted = ir.get(f"{'ashr' if signed else 'lshr'} {kind} {value}, {start}")
        beyond = ir.get(f"icmp uge {narrow} {position}, {_fixed(bits, 32, vector)}")
        sign = (
            ir.get(f"ashr {kind} {value}, {_fixed(bits - 1, bits, vector)}")
            if signed
            else _fixed(0, bits, vector)
        )
        shifted = ir.get(f"select {flag} {beyond}, {kind} {sign}, {kind} {shifted}")
        unused = ir.get(
            f"sub {narrow} {_fixed(bits, 32, vector)},"
            f" {ir.intrinsic('umin', narrow, length, _fixed(bits, 32, vector))}"
        )
        by = _widened(
            cx, ir.intrinsic("umin", narrow, unused, _fixed(bits - 1, 32, vector)), bits, vector
        )
        raised = ir.get(f"shl {kind} {shifted}, {by}")
        field = ir.get(f"{'ashr' if signed else 'lshr'} {kind} {raised}, {by}")
        empty = ir.get(f"icmp eq {narrow} {length}, {_fixed(0, 32, vector)}")
        return ir.get(f"select {flag} {empty}, {kind} {_fixed(0, bits, vector)}, {kind} {field}")

    cx.apply(instruction.operands[1:4], [bits, 32, 32], bits, build)


def insert(cx: LoweringContext, instruction: Instruction) -> None:
    """bfi d, a, b, position, length: the low bits of a into b."""
    bits, ir = TYPE_BITS[instruction.type], cx.ir

    def build(vector: bool, value: str, into: str, position: str, length: str) -> str:
        kind, narrow, flag = integer(bits, vector), integer(32, vector), integer(1, vector)
        position = ir.get(f"and {narrow} {position}, {_fixed(255, 32, vector)}")
        length = ir.get(f"and {narrow} {length}, {_fixed(255, 32, vector)}")
        length = ir.intrinsic("umin", narrow, length, _fixed(bits, 32, vector))
        unused = ir.get(f"sub {narrow} {_fixed(bits, 32, vector)}, {length}")
        by = _widened(
            cx, ir.intrinsic("umin", narrow, unused, _fixed(bits - 1, 32, vector)), bits, vector
        )
        start = _widened(
            cx, ir.intrinsic("umin", narrow, position, _fixed(bits - 1, 32, vector)), bits, vector
        )
        ones = ir.get(f"lshr {kind} {_fixed(-1, bits, vector)}, {by}")
        mask = ir.get(f"shl {kind} {ones}, {start}")
        nothing = ir.get(f"icmp eq {narrow} {length}, {_fixed(0, 32, vector)}")
        beyond = ir.get(f"icmp uge {narrow} {position}, {_fixed(bits, 32, vector)}")
        mask = ir.get(
            f"select {flag} {ir.get(f'or {flag} {nothing}, {beyond}')}, {kind}"
            f" {_fixed(0, bits, vector)}, {kind} {mask}"
        )
        field = ir.get(f"and {kind} {ir.get(f'shl {kind} {value}, {start}')}, {mask}")
        kept = ir.get(
            f"and {kind} {into}, {ir.get(f'xor {kind} {mask}, {_fixed(-1, bits, vector)}')}"
        )
        return ir.get(f"or {kind} {kept}, {field}")

    cx.apply(instruction.operands[1:5], [bits, bits, 32, 32], bits, build)


def permute_bytes(cx: LoweringContext, instruction: Instruction) -> None:
    """prmt d, a, b, selector: four bytes of the eight in {b, a}; a selector's bit 3 replicates the
    sign.
    """
    mode = instruction.modifiers[1:]
    selector = cx.read(instruction.operands[3], 32)
    if not mode and selector.text.lstrip("-").isdigit() and not int(selector.text) & 0x8888:
        _pick_bytes(cx, instruction, int(selector.text))
    else:
        if mode and (len(mode) > 1 or mode[0] not in _PERMUTATIONS):
            raise cx.unsupported()
        name = "ev_prmt" + "".join(f"_{item}" for item in mode)
        cx.apply_lanes(name, instruction.operands[1:4], 32, 32)


def _pick_bytes(cx: LoweringContext, instruction: Instruction, selector: int) -> None:
    """prmt with a constant selector: a shuffle of bytes."""
    ir = cx.ir

    def build(vector: bool, low: str, high: str) -> str:
        count = 4 * LANES if vector else 4
        kind, whole = f"<{count} x i8>", integer(32, vector)
        a, b = (ir.get(f"bitcast {whole} {item} to {kind}") for item in (low, high))
        picks = [selector >> 4 * (place % 4) & 7 for place in range(count)]
        order = [
            place // 4 * 4 + pick % 4 + (count if pick > 3 else 0)
            for place, pick in enumerate(picks)
        ]
        mask = ", ".join(f"i32 {item}" for item in order)
        return ir.get(
            f"bitcast {kind}"
            f" {ir.get(f'shufflevector {kind} {a}, {kind} {b}, <{count} x i32> <{mask}>')} to"
            f" {whole}"
        )

    cx.apply(instruction.operands[1:3], 32, 32, build)


def find_first(cx: LoweringContext, instruction: Instruction) -> None:
    """bfind: the highest bit that is set, for signed types the highest that differs from the sign;
    all ones if there is none.
    """
    name = f"ev_bfind_{'shiftamt_' if instruction.has('shiftamt') else ''}{instruction.type}"
    cx.apply_lanes(name, instruction.operands[1:2], TYPE_BITS[instruction.type], 32)


def find_nth(cx: LoweringContext, instruction: Instruction) -> None:
    """fns d, mask, base, offset: the n-th bit that is set."""
    cx.apply_lanes("ev_fns", instruction.operands[1:4], 32, 32)


def dot_product(cx: LoweringContext, instruction: Instruction) -> None:
    """dp4a, dp2a: products of bytes, summed with c."""
    cx.apply_lanes(
        f"ev_{'_'.join((instruction.op, *instruction.modifiers))}",
        instruction.operands[1:4],
        32,
        32,
    )


def sum_of_differences(cx: LoweringContext, instruction: Instruction) -> None:
    """sad d, a, b, c: c + |a - b|."""
    bits, ir, sign = TYPE_BITS[instruction.type], cx.ir, instruction.type[0]

    def build(vector: bool, a: str, b: str, c: str) -> str:
        kind = integer(bits, vector)
        high, low = (ir.intrinsic(f"{sign}{which}", kind, a, b) for which in ("max", "min"))
        return ir.get(f"add {kind} {c}, {ir.get(f'sub {kind} {high}, {low}')}")

    cx.apply(instruction.operands[1:4], bits, bits, build)


def extend(cx: LoweringContext, instruction: Instruction) -> None:
    """szext.mode.type d, a, width: the low bits of a, with sign or zeros above."""
    ir, how = cx.ir, "ashr" if instruction.type == "s32" else "lshr"

    def build(vector: bool, value: str, width: str) -> str:
        kind = integer(32, vector)
        width = _limited(cx, instruction, vector, width)
        unused = ir.get(f"sub {kind} {_fixed(32, 32, vector)}, {width}")
        by = ir.intrinsic("umin", kind, unused, _fixed(31, 32, vector))
        text = ir.get(f"{how} {kind} {ir.get(f'shl {kind} {value}, {by}')}, {by}")
        none = ir.get(f"icmp eq {kind} {width}, {_fixed(0, 32, vector)}")
        return ir.get(
            f"select {integer(1, vector)} {none}, {kind} {_fixed(0, 32, vector)}, {kind} {text}"
        )

    cx.apply(instruction.operands[1:3], 32, 32, build)


def mask_of_bits(cx: LoweringContext, instruction: Instruction) -> None:
    """bmsk.mode.b32 d, start, width: `width` ones from bit `start` on."""
    ir = cx.ir

    def build(vector: bool, start: str, width: str) -> str:
        kind, wide = integer(32, vector), integer(64, vector)
        start, width = (_limited(cx, instruction, vector, item) for item in (start, width))
        start, width = (ir.get(f"zext {kind} {item} to {wide}") for item in (start, width))
        ones = ir.get(
            f"sub {wide} {ir.get(f'shl {wide} {_fixed(1, 64, vector)}, {width}')},"
            f" {_fixed(1, 64, vector)}"
        )
        return ir.get(f"trunc {wide} {ir.get(f'shl {wide} {ones}, {start}')} to {kind}")

    cx.apply(instruction.operands[1:3], 32, 32, build)


def _limited(cx: LoweringContext, instruction: Instruction, vector: bool, text: str) -> str:
    """A number of bits: .wrap takes its low five bits, .clamp at most 32."""
    kind = integer(32, vector)
    if instruction.has("wrap"):
        return cx.ir.get(f"and {kind} {text}, {_fixed(31, 32, vector)}")
    return cx.ir.intrinsic("umin", kind, text, _fixed(32, 32, vector))


HANDLERS = {
    "bfe": extract,
    "bfi": insert,
    "prmt": permute_bytes,
    "bfind": find_first,
    "fns": find_nth,
    "dp4a": dot_product,
    "dp2a": dot_product,
    "sad": sum_of_differences,
    "szext": extend,
    "bmsk": mask_of_bits,
}
