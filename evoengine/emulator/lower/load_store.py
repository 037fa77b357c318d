"""ld and st, parameters, and hints about memory. In checked mode the checker is asked first and
says which lanes may go on.
"""

from __future__ import annotations

from evoengine.emulator.analyse.lane_variance import UNIFORM
from evoengine.emulator.emulator_errors import PtxError
from evoengine.emulator.lower.address import Place, confine, locate, minus, plus, space_of
from evoengine.emulator.lower.checker_calls import (
    ATOMIC,
    DATUM,
    LOOK,
    READ,
    STRONG_READ,
    STRONG_WRITE,
    WRITE,
    ask,
    check,
    fenced,
    is_block_wide,
    kind_of,
    restored,
)
from evoengine.emulator.lower.context import Context
from evoengine.emulator.lower.memory_access import gather, loaded, scatter, stored
from evoengine.emulator.lower.value import Value
from evoengine.emulator.ptx.syntax import TYPE_BITS, Address, Instruction, Operand, Symbol, Vector

__all__ = [
    "ATOMIC", "READ", "WRITE", "Place", "ask", "check", "confine", "fenced", "gather",
    "is_block_wide", "items_of", "locate", "minus",
    "plus", "restored", "scatter", "space_of",
]  # fmt: skip

WIDTHS = (8, 16, 32, 64)  # bits of one item; PTX ISA 9.7.9.8
COUNTS = (1, 2, 4, 8)  # items of one access: none, .v2, .v4, .v8
MAX_ACCESS_BYTES = 32  # of a lane


def load(cx: Context, instruction: Instruction) -> None:
    """ld, ldu: one to eight values a lane."""
    bits, targets = _form(cx, instruction, instruction.operands[0])
    address = instruction.operands[1]
    if (
        space_of(instruction) == "param"
        and isinstance(address, Address)
        and isinstance(address.base, Symbol)
    ):
        values = _parameters(cx, address.base, address.offset, bits, len(targets))
    else:
        place = locate(cx, address, space_of(instruction))
        before = restored(cx)
        check(
            cx,
            place,
            kind_of(instruction, READ, STRONG_READ) | _purpose(cx, instruction, targets),
            bits // 8 * len(targets),
        )
        values = loaded(cx, place, bits, len(targets))
        cx.mask, cx.mask_bits = before
    for target, value in zip(targets, values, strict=True):
        cx.write(target, value, signed=instruction.type.startswith("s"))


def _purpose(cx: Context, instruction: Instruction, targets: tuple[Operand, ...]) -> int:
    """What checked mode is told of a read besides its kind."""
    if cx.is_data(targets):
        return DATUM
    return LOOK if id(instruction) in cx.looks else 0


def _form(
    cx: Context, instruction: Instruction, operand: Operand
) -> tuple[int, tuple[Operand, ...]]:
    """The bits of an item and the items of an access."""
    bits, items = TYPE_BITS.get(instruction.type, 0), items_of(operand)
    if bits not in WIDTHS or len(items) not in COUNTS or bits // 8 * len(items) > MAX_ACCESS_BYTES:
        raise cx.unsupported(f"{len(items)} items of {bits} bits")
    return bits, items


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """The items of a vector operand, or the operand alone."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def _parameters(cx: Context, symbol: Symbol, offset: int, bits: int, count: int) -> list[Value]:
    """Of the kernel's parameters: the same for all. Raises PtxError where they end before that."""
    if symbol.name not in cx.layout.parameters:
        raise cx.unsupported("a parameter that is not the kernel's")
    start = cx.layout.parameters[symbol.name].offset + symbol.offset + offset
    if start < 0 or start + count * bits // 8 > cx.layout.parameter_bytes:
        raise PtxError(
            f"`{cx.instruction.text}` reads byte {start} of {cx.layout.parameter_bytes} bytes of"
            " parameters"
        )
    found = []
    for item in range(count):
        at = cx.ir.get(f"getelementptr i8, ptr %params, i64 {start + item * bits // 8}")
        found.append(Value(UNIFORM, cx.ir.get(f"load i{bits}, ptr {at}, align 1"), bits))
    return found


def store(cx: Context, instruction: Instruction) -> None:
    """st: one to eight values a lane; where lanes write one address, the highest wins."""
    bits, items = _form(cx, instruction, instruction.operands[1])
    values = [cx.read(item, bits) for item in items]
    place = locate(cx, instruction.operands[0], space_of(instruction))
    if instruction.has("release") and not is_block_wide(instruction):
        fenced(cx)
    before = restored(cx)
    check(cx, place, kind_of(instruction, WRITE, STRONG_WRITE), bits // 8 * len(values))
    stored(cx, place, values, bits)
    cx.mask, cx.mask_bits = before


def nothing(cx: Context, instruction: Instruction) -> None:
    """Hints."""


HANDLERS = {
    "ld": load,
    "ldu": load,
    "st": store,
    **dict.fromkeys(
        ("prefetch", "prefetchu", "nanosleep", "discard", "applypriority", "yield", "pmevent"),
        nothing,
    ),
}
