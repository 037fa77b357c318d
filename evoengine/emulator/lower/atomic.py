"""atom and red: one lane after another in C (run/native/atomic.c), on addresses that are masked
into the arena and aligned.

Aligned, because the host's atomic operations need it; a misaligned address ends the kernel on a
GPU, and checked mode reports it.
"""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import VARYING
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import integer
from evoengine.emulator.lower.load_store import (
    ATOMIC,
    check,
    current_mask,
    locate,
    mask_into_arena,
    report_fence,
    report_performed,
    space_of,
)
from evoengine.emulator.ptx.syntax import TYPE_BITS, Instruction, Operand, Sink

_INTEGERS = ("u32", "s32", "u64", "s64")
# PTX ISA 9.7.12.5: which operation has which types.
_TYPES = {
    "add": (*_INTEGERS, "f32", "f64", "f16", "bf16", "f16x2", "bf16x2"),
    **dict.fromkeys(("min", "max"), _INTEGERS),
    **dict.fromkeys(("and", "or", "xor"), ("b32", "b64")),
    "exch": ("b16", "b32", "b64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "cas": ("b16", "b32", "b64"),
}
_UNKNOWN = ("v2", "v4", "v8", "async", "b128")


def atomic(cx: LoweringContext, instruction: Instruction) -> None:
    """atom[.SEM][.SCOPE][.SPACE].OP.TYPE d, [a], b[, c][, cache policy]; red has no d."""
    operands = list(instruction.operands)
    target = Sink() if instruction.op == "red" else operands.pop(0)
    operation = next((item for item in _TYPES if instruction.has(item)), "")
    type_ = instruction.type
    if (
        not operation
        or type_ not in _TYPES[operation]
        or any(instruction.has(item) for item in _UNKNOWN)
    ):
        raise cx.unsupported()
    bits = TYPE_BITS[type_]
    values = [cx.vector(item, bits) for item in operands[1 : 3 if operation == "cas" else 2]]
    if len(values) != (2 if operation == "cas" else 1):
        raise cx.unsupported("the number of its value operands")
    _order(cx, instruction)
    named = {"b32": "u32", "b64": "u64"}.get(type_, type_) if operation != "cas" else type_
    cx.write(
        target,
        Value(
            VARYING,
            _call_atomic(cx, f"ev_atomic_{operation}_{named}", operands[0], values, bits),
            bits,
        ),
    )


def _order(cx: LoweringContext, instruction: Instruction) -> None:
    """Reports the fence of a release to the checker."""
    if instruction.has("release") or instruction.has("acq_rel"):
        report_fence(cx, instruction)


def _call_atomic(
    cx: LoweringContext, name: str, address: Operand, values: list[str], bits: int
) -> str:
    """The old values, <32 x i`bits`>; 0 in inactive lanes."""
    lane_addresses = locate(cx, address, space_of(cx.instruction))
    before = current_mask(cx)
    check(cx, lane_addresses, ATOMIC, bits // 8)
    kind = integer(64, True)
    masked = cx.as_vector(mask_into_arena(cx, lane_addresses.host))
    aligned = cx.ir.get(f"and {kind} {masked}, splat (i64 {-(bits // 8)})")
    pointers = [
        cx.lanes(0, 64, aligned),
        *(cx.lanes(slot, bits, text) for slot, text in enumerate(values, 1)),
    ]
    old = cx.lanes(len(pointers), bits, "zeroinitializer")
    cx.ir.call(
        "void",
        name,
        *(("ptr", pointer) for pointer in pointers),
        ("i32", cx.mask_bits),
        ("ptr", old),
    )
    report_performed(cx)
    cx.mask, cx.mask_bits = before
    return cx.from_lanes(old, bits)


HANDLERS = {"atom": atomic, "red": atomic}
