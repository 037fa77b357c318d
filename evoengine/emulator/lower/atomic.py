"""atom and red: one lane after another in C (run/native/atomic.c), on addresses confined and
aligned.

Aligned, because the host's atomic operations need it; where a kernel's address is not, a GPU ends
the kernel and checked mode says so.
"""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import VARYING
from evoengine.emulator.lower.context import Context, Value
from evoengine.emulator.lower.emitter import integer
from evoengine.emulator.lower.load_store import (
    ATOMIC,
    check,
    confine,
    fenced,
    is_block_wide,
    locate,
    restored,
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


def atomic(cx: Context, instruction: Instruction) -> None:
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
        raise cx.unsupported("without its values")
    _order(cx, instruction)
    named = {"b32": "u32", "b64": "u64"}.get(type_, type_) if operation != "cas" else type_
    cx.write(
        target,
        Value(
            VARYING,
            _performed(cx, f"ev_atomic_{operation}_{named}", operands[0], values, bits),
            bits,
        ),
    )


def _order(cx: Context, instruction: Instruction) -> None:
    """What came before a release is to be seen by who sees its result."""
    if (instruction.has("release") or instruction.has("acq_rel")) and not is_block_wide(
        instruction
    ):
        fenced(cx)


def _performed(cx: Context, name: str, address: Operand, values: list[str], bits: int) -> str:
    """What was there before; 0 for lanes that do not run."""
    place = locate(cx, address, space_of(cx.instruction))
    before = restored(cx)
    check(cx, place, ATOMIC, bits // 8)
    kind = integer(64, True)
    aligned = cx.ir.get(
        f"and {kind} {cx.spread(confine(cx, place.value))}, splat (i64 {-(bits // 8)})"
    )
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
    cx.mask, cx.mask_bits = before
    return cx.from_lanes(old, bits)


HANDLERS = {"atom": atomic, "red": atomic}
