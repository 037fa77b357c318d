"""Addresses: where operands point, confined to the reservation; cvta and isspacep.

Generic addresses are host addresses. Shared memory has offsets from 0 in its own window, local
memory offsets in the frame of a thread; frames lie one behind the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.analyse.lane_variance import UNIFORM, VARYING, Ramp
from evoengine.emulator.lower.context import Context
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.lower.value import Value, literal, steps
from evoengine.emulator.ptx.syntax import (
    TYPE_BITS,
    Address,
    Instruction,
    Integer,
    Operand,
    Register,
    Symbol,
)

NAMED_SPACES = ("global", "shared", "local", "const", "param")


@dataclass(frozen=True)
class Place:
    """The host address of every lane, and where an access stands in its own space."""

    value: Value  # host address, 64 bits, not confined yet
    own: Value  # offset in the shared window or the thread's frame, address otherwise; 64 bits
    space: str


def space_of(instruction: Instruction) -> str:
    """The state space that an instruction names."""
    for modifier in instruction.modifiers:
        space = modifier.partition("::")[0]
        if space in NAMED_SPACES:
            return space
    return "generic"


def locate(cx: Context, operand: Operand, space: str) -> Place:
    """Where an address operand points."""
    if not isinstance(operand, Address):
        raise cx.unsupported(f"address {operand}")
    own = _own(cx, operand)
    if space == "shared":
        return Place(plus(cx, own, "%shared"), own, space)
    if space == "local":
        return Place(_of_frames(cx, plus(cx, own, "%local_base"), "add"), own, space)
    return Place(own, own, "global" if space == "param" else space)


def _own(cx: Context, operand: Address) -> Value:
    match operand.base:
        case Symbol():
            base = cx.address_of(operand.base)
        case Integer(number):
            base = Value(UNIFORM, literal(number, 64), 64)
        case Register(name) if TYPE_BITS[cx.registers.get(name, "b64")] == 32:
            return _of_narrow(cx, operand.base, operand.offset)
        case Register():
            base = cx.read(operand.base, 64)
    return plus(cx, base, literal(operand.offset, 64)) if operand.offset else base


def _of_narrow(cx: Context, register: Register, offset: int) -> Value:
    """An address of 32 bits, which wraps there; a ramp that begins below zero reaches the window's
    start in a later lane.
    """
    value = cx.read(register, 32)
    if offset:
        amount = literal(offset, 32)
        vector = value.shape is VARYING
        value = Value(
            value.shape,
            cx.ir.get(
                f"add {integer(32, vector)} {value.text},"
                f" {f'splat (i32 {amount})' if vector else amount}"
            ),
            32,
        )
    return cx.resized(value, 64, signed=isinstance(value.shape, Ramp))


def _of_frames(cx: Context, value: Value, how: str) -> Value:
    """`value` with the offset of each lane's frame added, or with sub taken away."""
    frame = cx.layout.frame_bytes
    if value.shape is UNIFORM and how == "add":
        return Value(Ramp(frame), value.text, 64)
    return Value(
        VARYING, cx.ir.get(f"{how} {integer(64, True)} {cx.spread(value)}, {steps(frame, 64)}"), 64
    )


def plus(cx: Context, value: Value, amount: str) -> Value:
    """A 64-bit value plus a scalar."""
    if value.shape is VARYING:
        splat = cx.ir.splat(amount, "i64")
        return Value(VARYING, cx.ir.get(f"add {integer(64, True)} {value.text}, {splat}"), 64)
    return Value(value.shape, cx.ir.get(f"add i64 {value.text}, {amount}"), 64)


def minus(cx: Context, value: Value, amount: str) -> Value:
    """A 64-bit value less a scalar."""
    return plus(cx, value, cx.ir.get(f"sub i64 0, {amount}"))


def confine(cx: Context, value: Value) -> Value:
    """The same address if it lies in the reservation, else some other one that does; for each lane,
    so a ramp becomes a vector.
    """
    if value.shape is UNIFORM:
        return Value(UNIFORM, confined_base(cx, value), 64)
    mask, base = (1 << cx.layout.arena_bits) - 1, cx.layout.arena_base
    inside = cx.ir.get(f"and {integer(64, True)} {cx.spread(value)}, splat (i64 {mask})")
    return Value(VARYING, cx.ir.get(f"or {integer(64, True)} {inside}, splat (i64 {base})"), 64)


def confined_base(cx: Context, value: Value) -> str:
    """Where a scalar, or the first lane of a ramp, may point; what lies behind the reservation
    stops a short ramp.
    """
    inside = cx.ir.get(f"and i64 {value.text}, {(1 << cx.layout.arena_bits) - 1}")
    return cx.ir.get(f"or i64 {inside}, {cx.layout.arena_base}")


def convert_address(cx: Context, instruction: Instruction) -> None:
    """cvta: between a space's own addresses and generic ones."""
    source, space, back = (
        cx.read(instruction.operands[1], 64),
        space_of(instruction),
        instruction.has("to"),
    )
    if space == "shared":
        source = minus(cx, source, "%shared") if back else plus(cx, source, "%shared")
    elif space == "local":
        moved = minus(cx, source, "%local_base") if back else plus(cx, source, "%local_base")
        source = _of_frames(cx, moved, "sub" if back else "add")
    cx.write(instruction.operands[0], source)


def is_in_space(cx: Context, instruction: Instruction) -> None:
    """isspacep: whether a generic address lies in a space."""
    source, ir, space = cx.read(instruction.operands[1], 64), cx.ir, space_of(instruction)
    x, y, z = cx.block
    shared = ir.get(f"add i32 %dynamic_shared, {cx.layout.static_shared}")
    windows = {
        "shared": ("%shared", ir.get(f"zext i32 {shared} to i64")),
        "local": ("%local", str(-(-x * y * z // LANES) * LANES * cx.layout.frame_bytes)),
    }

    def inside(vector: bool, value: str, which: str) -> str:
        start, end = (ir.splat(item, "i64") if vector else item for item in windows[which])
        kind = integer(64, vector)
        return ir.get(f"icmp ult {kind} {ir.get(f'sub {kind} {value}, {start}')}, {end}")

    def build(vector: bool, value: str) -> str:
        if space in windows:
            return inside(vector, value, space)
        kind = integer(1, vector)
        either = ir.get(
            f"or {kind} {inside(vector, value, 'shared')}, {inside(vector, value, 'local')}"
        )
        return ir.get(f"xor {kind} {either}, {'splat (i1 true)' if vector else 'true'}")

    cx.write(instruction.operands[0], cx.compute([source], 1, build))


HANDLERS = {"cvta": convert_address, "isspacep": is_in_space}
