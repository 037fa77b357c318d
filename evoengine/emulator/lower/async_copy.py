"""cp.async: copies from global to shared memory, executed at issue; only the checker tracks pending
copies.

Sources are masked into the arena. Targets are limited to the block's shared memory and the bytes
right after it, which are a red zone.
"""

from __future__ import annotations

from evoengine.emulator.analyse.uniformity import UNIFORM
from evoengine.emulator.lower.context import LoweringContext, Value
from evoengine.emulator.lower.emitter import integer
from evoengine.emulator.lower.load_store import locate, mask_into_arena
from evoengine.emulator.ptx.syntax import Instruction, Integer, Operand, Register

SIZES = (4, 8, 16)  # PTX ISA 9.7.9.25.3.1: allowed sizes of one copy in bytes


def copy(cx: LoweringContext, instruction: Instruction) -> None:
    """cp.async.{ca,cg}, commit_group, wait_group, wait_all."""
    if not instruction.has("async") or instruction.has("bulk") or instruction.has("mbarrier"):
        raise cx.unsupported()
    if instruction.has("commit_group"):
        _commit(cx)
    elif instruction.has("wait_all"):
        _commit(cx)
        _wait(cx, 0)
    elif instruction.has("wait_group"):
        pending = instruction.operands[0]
        if not isinstance(pending, Integer):
            raise cx.unsupported("a number of groups that is not a constant")
        _wait(cx, pending.value)
    else:
        _copy(cx, instruction)


def _copy(cx: LoweringContext, instruction: Instruction) -> None:
    """cp.async.ca.shared.global [to], [from], bytes[, source bytes or predicate to ignore the
    source][, cache policy].
    """
    to, source, size, *also = instruction.operands
    if not isinstance(size, Integer) or size.value not in SIZES:
        raise cx.unsupported(f"{size} bytes")
    if any(item.endswith("cache_hint") for item in instruction.modifiers):
        also = also[:-1]
    source_bytes = cx.as_vector(_source_bytes(cx, size.value, also))
    target, lane_addresses = (
        cx.as_vector(locate(cx, to, "shared").in_space),
        locate(cx, source, "global"),
    )
    mask = (
        _checked_lanes(cx, size.value, target, cx.as_vector(lane_addresses.in_space), source_bytes)
        if cx.checked
        else cx.mask_bits
    )
    pointers = [
        cx.lanes(0, 32, _limited(cx, target)),
        cx.lanes(1, 64, cx.as_vector(mask_into_arena(cx, lane_addresses.host))),
        cx.lanes(2, 32, source_bytes),
    ]
    shared = cx.ir.get("inttoptr i64 %shared to ptr")
    cx.ir.call(
        "void", "ev_copy_async", ("ptr", pointers[0]), ("ptr", shared), ("ptr", pointers[1]),
        ("ptr", pointers[2]),
        ("i32", str(size.value)), ("i32", mask),
    )  # fmt: skip


def _source_bytes(cx: LoweringContext, size: int, also: list[Operand]) -> Value:
    """How many bytes each lane reads from its source, 32 bits; the rest of the copy is
    zero-filled.
    """
    if not also:
        return Value(UNIFORM, str(size), 32)
    operand = also[0]
    if not isinstance(operand, Register) or cx.registers[operand.name] != "pred":
        return cx.read(operand, 32)

    def kept(vector: bool, ignored: str) -> str:
        kind = integer(32, vector)
        all_, none = (f"splat (i32 {size})", "zeroinitializer") if vector else (str(size), "0")
        return cx.ir.get(f"select {integer(1, vector)} {ignored}, {kind} {none}, {kind} {all_}")

    return cx.compute([cx.read(operand, 1)], 32, kept)


def _limited(cx: LoweringContext, target: str) -> str:
    """Offsets in shared memory, <32 x i32>, limited to its end."""
    ir = cx.ir
    size = ir.get(f"add i32 %dynamic_shared, {cx.layout.static_shared}")
    end = ir.splat(ir.get(f"zext i32 {size} to i64"), "i64")
    return _as_offsets(cx, ir.intrinsic("umin", integer(64, True), target, end))


def _as_offsets(cx: LoweringContext, target: str) -> str:
    return cx.ir.get(f"trunc {integer(64, True)} {target} to {integer(32, True)}")


def _checked_lanes(
    cx: LoweringContext, size: int, target: str, source: str, source_bytes: str
) -> str:
    """The lanes that the checker lets through, as an i32."""
    pointers = [
        cx.lanes(0, 32, _as_offsets(cx, target)),
        cx.lanes(1, 64, source),
        cx.lanes(2, 32, source_bytes),
    ]
    return cx.ir.call(
        "i32", "ev_check_async", ("ptr", "%checker"), ("i32", "%warp_index"), ("i32", cx.mask_bits),
        ("i32", str(size)),
        *(("ptr", pointer) for pointer in pointers), ("i32", str(cx.site(cx.instruction))),
    )  # fmt: skip


def _commit(cx: LoweringContext) -> None:
    if cx.checked:
        cx.ir.call(
            "void",
            "ev_check_async_commit",
            ("ptr", "%checker"),
            ("i32", "%warp_index"),
            ("i32", cx.mask_bits),
        )


def _wait(cx: LoweringContext, pending: int) -> None:
    if cx.checked:
        cx.ir.call(
            "void",
            "ev_check_async_wait",
            ("ptr", "%checker"),
            ("i32", "%warp_index"),
            ("i32", cx.mask_bits),
            ("i32", str(pending)),
        )


HANDLERS = {"cp": copy}
