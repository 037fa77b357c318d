"""Addresses of memory operands, masked into the device's arena; cvta and isspacep.

Generic addresses are host addresses. Shared addresses are offsets in the block's window, local
addresses offsets in the thread's frame; the frames of a block are contiguous. Masking is software
fault isolation: no access can leave the arena, whatever address a kernel computes.
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.analyse.lane_variance import UNIFORM, VARYING, Affine
from evoengine.emulator.lower.context import LoweringContext
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.lower.value import Value, affine_steps, literal
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
class LaneAddresses:
    """The addresses that the lanes of a warp access, as 64-bit values over 32 lanes."""

    host: Value  # host addresses, not masked into the arena yet
    in_space: Value  # shared: offset in the window; local: offset in the frame; else the address
    space: str  # global, const, shared, local or generic


def space_of(instruction: Instruction) -> str:
    """The state space that an instruction names."""
    for modifier in instruction.modifiers:
        space = modifier.partition("::")[0]
        if space in NAMED_SPACES:
            return space
    return "generic"


def locate(cx: LoweringContext, operand: Operand, space: str) -> LaneAddresses:
    """The addresses that an address operand stands for."""
    if not isinstance(operand, Address):
        raise cx.unsupported(f"address {operand}")
    own = _address_in_space(cx, operand)
    if space == "shared":
        return LaneAddresses(plus(cx, own, "%shared"), own, space)
    if space == "local":
        return LaneAddresses(_of_frames(cx, plus(cx, own, "%local_base"), "add"), own, space)
    return LaneAddresses(own, own, "global" if space == "param" else space)


def _address_in_space(cx: LoweringContext, operand: Address) -> Value:
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


def _of_narrow(cx: LoweringContext, register: Register, offset: int) -> Value:
    """A 32-bit address, which wraps at 32 bits; an affine one that begins below zero reaches the
    window's start in a later lane.
    """
    value = cx.read(register, 32)
    if offset:
        amount = literal(offset, 32)
        vector = value.variance is VARYING
        value = Value(
            value.variance,
            cx.ir.get(
                f"add {integer(32, vector)} {value.text},"
                f" {f'splat (i32 {amount})' if vector else amount}"
            ),
            32,
        )
    return cx.resized(value, 64, signed=isinstance(value.variance, Affine))


def _of_frames(cx: LoweringContext, value: Value, how: str) -> Value:
    """`value` plus the offset of each lane's frame, or minus it if `how` is "sub"."""
    frame = cx.layout.frame_bytes
    if value.variance is UNIFORM and how == "add":
        return Value(Affine(frame), value.text, 64)
    return Value(
        VARYING,
        cx.ir.get(f"{how} {integer(64, True)} {cx.as_vector(value)}, {affine_steps(frame, 64)}"),
        64,
    )


def plus(cx: LoweringContext, value: Value, amount: str) -> Value:
    """A 64-bit value plus a scalar."""
    if value.variance is VARYING:
        splat = cx.ir.splat(amount, "i64")
        return Value(VARYING, cx.ir.get(f"add {integer(64, True)} {value.text}, {splat}"), 64)
    return Value(value.variance, cx.ir.get(f"add i64 {value.text}, {amount}"), 64)


def minus(cx: LoweringContext, value: Value, amount: str) -> Value:
    """A 64-bit value minus a scalar."""
    return plus(cx, value, cx.ir.get(f"sub i64 0, {amount}"))


def mask_into_arena(cx: LoweringContext, value: Value) -> Value:
    """The same address if it lies in the arena, else some other one in it; per lane, so an affine
    value becomes a vector.
    """
    if value.variance is UNIFORM:
        return Value(UNIFORM, mask_base_into_arena(cx, value), 64)
    mask, base = (1 << cx.layout.arena_bits) - 1, cx.layout.arena_base
    inside = cx.ir.get(f"and {integer(64, True)} {cx.as_vector(value)}, splat (i64 {mask})")
    return Value(VARYING, cx.ir.get(f"or {integer(64, True)} {inside}, splat (i64 {base})"), 64)


def mask_base_into_arena(cx: LoweringContext, value: Value) -> str:
    """A scalar address, or the first lane of an affine one, masked into the arena; the guard area
    after the arena holds a short affine access that runs over its end.
    """
    inside = cx.ir.get(f"and i64 {value.text}, {(1 << cx.layout.arena_bits) - 1}")
    return cx.ir.get(f"or i64 {inside}, {cx.layout.arena_base}")


def convert_address(cx: LoweringContext, instruction: Instruction) -> None:
    """cvta: converts between addresses of a space and generic ones."""
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


def is_in_space(cx: LoweringContext, instruction: Instruction) -> None:
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
