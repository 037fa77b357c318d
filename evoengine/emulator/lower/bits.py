"""Fields of bits and bytes: bfe, bfi, bfind, prmt, dp4a, sad."""

from __future__ import annotations

from evoengine.emulator.lower.context import Context
from evoengine.emulator.lower.emitter import integer
from evoengine.emulator.ptx.program import TYPE_BITS, Instruction


def _fixed(number: int, bits: int, vector: bool) -> str:
    return f"splat (i{bits} {number})" if vector else str(number)


def _widened(cx: Context, text: str, bits: int, vector: bool) -> str:
    """A 32-bit operand in the width of the instruction."""
    if bits == 32:
        return text
    return cx.ir.get(f"zext {integer(32, vector)} {text} to {integer(bits, vector)}")


def extract(cx: Context, instruction: Instruction) -> None:
    """bfe d, a, position, length: PTX ISA's pseudo code; the sign of a field is its highest bit inside the register."""
    bits, ir, signed = TYPE_BITS[instruction.type], cx.ir, instruction.type.startswith("s")

    def build(vector: bool, value: str, position: str, length: str) -> str:
        kind, narrow, flag = integer(bits, vector), integer(32, vector), integer(1, vector)
        position = ir.get(f"and {narrow} {position}, {_fixed(255, 32, vector)}")
        length = ir.get(f"and {narrow} {length}, {_fixed(255, 32, vector)}")
        start = _widened(cx, ir.intrinsic("umin", narrow, position, _fixed(bits - 1, 32, vector)), bits, vector)
        shifted = ir.get(f"{'ashr' if signed else 'lshr'} {kind} {value}, {start}")
        beyond = ir.get(f"icmp uge {narrow} {position}, {_fixed(bits, 32, vector)}")
        sign = ir.get(f"ashr {kind} {value}, {_fixed(bits - 1, bits, vector)}") if signed else _fixed(0, bits, vector)
        shifted = ir.get(f"select {flag} {beyond}, {kind} {sign}, {kind} {shifted}")
        unused = ir.get(f"sub {narrow} {_fixed(bits, 32, vector)}, {ir.intrinsic('umin', narrow, length, _fixed(bits, 32, vector))}")
        by = _widened(cx, ir.intrinsic("umin", narrow, unused, _fixed(bits - 1, 32, vector)), bits, vector)
        raised = ir.get(f"shl {kind} {shifted}, {by}")
        field = ir.get(f"{'ashr' if signed else 'lshr'} {kind} {raised}, {by}")
        empty = ir.get(f"icmp eq {narrow} {length}, {_fixed(0, 32, vector)}")
        return ir.get(f"select {flag} {empty}, {kind} {_fixed(0, bits, vector)}, {kind} {field}")

    cx.apply(instruction.operands[1:4], [bits, 32, 32], bits, build)


def insert(cx: Context, instruction: Instruction) -> None:
    """bfi d, a, b, position, length: the low bits of a into b."""
    bits, ir = TYPE_BITS[instruction.type], cx.ir

    def build(vector: bool, value: str, into: str, position: str, length: str) -> str:
        kind, narrow, flag = integer(bits, vector), integer(32, vector), integer(1, vector)
        position = ir.get(f"and {narrow} {position}, {_fixed(255, 32, vector)}")
        length = ir.get(f"and {narrow} {length}, {_fixed(255, 32, vector)}")
        length = ir.intrinsic("umin", narrow, length, _fixed(bits, 32, vector))
        unused = ir.get(f"sub {narrow} {_fixed(bits, 32, vector)}, {length}")
        by = _widened(cx, ir.intrinsic("umin", narrow, unused, _fixed(bits - 1, 32, vector)), bits, vector)
        start = _widened(cx, ir.intrinsic("umin", narrow, position, _fixed(bits - 1, 32, vector)), bits, vector)
        ones = ir.get(f"lshr {kind} {_fixed(-1, bits, vector)}, {by}")
        mask = ir.get(f"shl {kind} {ones}, {start}")
        nothing = ir.get(f"icmp eq {narrow} {length}, {_fixed(0, 32, vector)}")
        beyond = ir.get(f"icmp uge {narrow} {position}, {_fixed(bits, 32, vector)}")
        mask = ir.get(f"select {flag} {ir.get(f'or {flag} {nothing}, {beyond}')}, {kind} {_fixed(0, bits, vector)}, {kind} {mask}")
        field = ir.get(f"and {kind} {ir.get(f'shl {kind} {value}, {start}')}, {mask}")
        kept = ir.get(f"and {kind} {into}, {ir.get(f'xor {kind} {mask}, {_fixed(-1, bits, vector)}')}")
        return ir.get(f"or {kind} {kept}, {field}")

    cx.apply(instruction.operands[1:5], [bits, bits, 32, 32], bits, build)


def permute_bytes(cx: Context, instruction: Instruction) -> None:
    """prmt d, a, b, selector: four bytes of the eight in {b, a}; a selector's bit 3 replicates the sign."""
    if instruction.modifiers != ("b32",):
        raise cx.unsupported()
    ir = cx.ir

    def build(vector: bool, low: str, high: str, selector: str) -> str:
        wide, kind = integer(64, vector), integer(32, vector)
        both = ir.get(f"zext {kind} {high} to {wide}")
        both = ir.get(f"shl {wide} {both}, {_fixed(32, 64, vector)}")
        both = ir.get(f"or {wide} {both}, {ir.get(f'zext {kind} {low} to {wide}')}")
        whole = _fixed(0, 32, vector)
        for place in range(4):
            nibble = ir.get(f"lshr {kind} {selector}, {_fixed(4 * place, 32, vector)}")
            number = ir.get(f"and {kind} {nibble}, {_fixed(7, 32, vector)}")
            by = ir.get(f"zext {kind} {ir.get(f'shl {kind} {number}, {_fixed(3, 32, vector)}')} to {wide}")
            byte = ir.get(f"trunc {wide} {ir.get(f'lshr {wide} {both}, {by}')} to {integer(8, vector)}")
            sign = ir.get(f"ashr {integer(8, vector)} {byte}, {_fixed(7, 8, vector)}")
            replicate = ir.get(f"icmp ne {kind} {ir.get(f'and {kind} {nibble}, {_fixed(8, 32, vector)}')}, {_fixed(0, 32, vector)}")
            byte = ir.get(f"select {integer(1, vector)} {replicate}, {integer(8, vector)} {sign}, {integer(8, vector)} {byte}")
            moved = ir.get(f"shl {kind} {ir.get(f'zext {integer(8, vector)} {byte} to {kind}')}, {_fixed(8 * place, 32, vector)}")
            whole = ir.get(f"or {kind} {whole}, {moved}")
        return whole

    cx.apply(instruction.operands[1:4], 32, 32, build)


HANDLERS = {"bfe": extract, "bfi": insert, "prmt": permute_bytes}
