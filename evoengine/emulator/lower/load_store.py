"""ld and st, parameters, and memory hints. In checked mode the checker is called first and returns
the lanes that may access memory.
"""

from __future__ import annotations

from evoengine.emulator.analyse.lane_variance import UNIFORM
from evoengine.emulator.emulator_errors import PtxError
from evoengine.emulator.lower.address import (
    LaneAddresses,
    locate,
    mask_into_arena,
    minus,
    plus,
    space_of,
)
from evoengine.emulator.lower.checker_calls import (
    ATOMIC,
    DATA,
    POLL,
    READ,
    STRONG_READ,
    STRONG_WRITE,
    WRITE,
    access_kind,
    check,
    check_access,
    current_mask,
    report_fence,
    report_performed,
)
from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.lower.memory_access import gather, load_values, scatter, store_values
from evoengine.emulator.lower.value import Value
from evoengine.emulator.ptx.syntax import TYPE_BITS, Address, Instruction, Operand, Symbol, Vector

__all__ = [
    "ATOMIC",
    "READ",
    "WRITE",
    "LaneAddresses",
    "check",
    "check_access",
    "current_mask",
    "gather",
    "items_of",
    "locate",
    "mask_into_arena",
    "minus",
    "plus",
    "report_fence",
    "report_performed",
    "scatter",
    "space_of",
]  # fmt: skip

WIDTHS = (8, 16, 32, 64)  # bits of one item; PTX ISA 9.7.9.8
COUNTS = (1, 2, 4, 8)  # items of one access: none, .v2, .v4, .v8
MAX_ACCESS_BYTES = 32  # of a lane


def load(cx: LoweringContext, instruction: Instruction) -> None:
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
        lane_addresses = locate(cx, address, space_of(instruction))
        before = current_mask(cx)
        check(
            cx,
            lane_addresses,
            access_kind(instruction, READ, STRONG_READ) | _purpose(cx, instruction, targets),
            bits // 8 * len(targets),
        )
        values = load_values(cx, lane_addresses, bits, len(targets))
        cx.mask, cx.mask_bits = before
    for target, value in zip(targets, values, strict=True):
        cx.write(target, value, signed=instruction.type.startswith("s"))


def _purpose(cx: LoweringContext, instruction: Instruction, targets: tuple[Operand, ...]) -> int:
    """The flag of a read for checked mode: pure data, a poll before an atomic operation, or
    neither.
    """
    if cx.is_data(targets):
        return DATA
    return POLL if id(instruction) in cx.poll_loads else 0


def _form(
    cx: LoweringContext, instruction: Instruction, operand: Operand
) -> tuple[int, tuple[Operand, ...]]:
    """The width of an item in bits, and the items of an access."""
    bits, items = TYPE_BITS.get(instruction.type, 0), items_of(operand)
    if bits not in WIDTHS or len(items) not in COUNTS or bits // 8 * len(items) > MAX_ACCESS_BYTES:
        raise cx.unsupported(f"{len(items)} items of {bits} bits")
    return bits, items


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """The items of a vector operand, or the operand alone."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def _parameters(
    cx: LoweringContext, symbol: Symbol, offset: int, bits: int, count: int
) -> list[Value]:
    """Loads from the kernel's parameters, which are uniform. Raises PtxError beyond their end."""
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


def store(cx: LoweringContext, instruction: Instruction) -> None:
    """st: one to eight values a lane; where lanes write one address, the highest wins."""
    bits, items = _form(cx, instruction, instruction.operands[1])
    values = [cx.read(item, bits) for item in items]
    lane_addresses = locate(cx, instruction.operands[0], space_of(instruction))
    if instruction.has("release"):
        report_fence(cx, instruction)
    before = current_mask(cx)
    check(
        cx, lane_addresses, access_kind(instruction, WRITE, STRONG_WRITE), bits // 8 * len(values)
    )
    store_values(cx, lane_addresses, values, bits)
    cx.mask, cx.mask_bits = before


def no_operation(cx: LoweringContext, instruction: Instruction) -> None:
    """A hint without effect here."""


HANDLERS = {
    "ld": load,
    "ldu": load,
    "st": store,
    **dict.fromkeys(
        (
            "prefetch",
            "prefetchu",
            "nanosleep",
            "discard",
            "applypriority",
            "yield",
            "pmevent",
            "pragma",
        ),
        no_operation,
    ),
}
