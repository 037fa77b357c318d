"""The entry of a lowered function: register slots, fields of the warp and block records,
threadIdx.
"""

from __future__ import annotations

from evoengine.emulator.analyse.lane_variance import VARYING, thread_index_variance
from evoengine.emulator.lower.context import GROUP_ALIGN
from evoengine.emulator.lower.emitter import LANES, integer
from evoengine.emulator.lower.lowered_body import LoweredBody
from evoengine.emulator.lower.pinned_slots import pin, pinned_registers
from evoengine.emulator.lower.scratch import SCRATCH_BYTES
from evoengine.emulator.lower.value import IOTA
from evoengine.emulator.run.abi import BlockRecord, WarpRecord


def declare_registers(body: LoweredBody) -> None:
    """Allocates a zeroed slot for every register: undefined values must not depend on what ran
    before.
    """
    ir, cx = body.ir, body.cx
    _declare_fragment_groups(body)
    grouped = {name for names in cx.fragment_groups for name in names}
    for name in cx.registers:
        if name not in grouped:
            type_ = cx.slot_type(name)
            ir.do(f"{cx.slot(name)} = alloca {type_}")
            ir.do(
                f"store {type_}"
                f" {'zeroinitializer' if type_[0] == '<' else 'false' if type_ == 'i1' else '0'},"
                f" ptr {cx.slot(name)}"
            )
    for name in pinned_registers(body.cfg, body.uniformity):
        pin(ir, cx.slot(name))


def _declare_fragment_groups(body: LoweredBody) -> None:
    """Allocates contiguous slots, in the memory of the warp or on the stack; not zeroed, because
    each is written before it is read.
    """
    ir, cx = body.ir, body.cx
    for number, names in enumerate(cx.fragment_groups):
        offset = body.saved.group_offset(number)
        where = (
            f"alloca [{len(names)} x <{LANES} x i32>], align {GROUP_ALIGN}"
            if offset is None
            else f"getelementptr i8, ptr %warp, i64 {offset}"
        )
        ir.do(f"%group{number} = {where}")
        for place, name in enumerate(names):
            ir.do(
                f"{cx.slot(name)} = getelementptr <{LANES} x i32>, ptr %group{number}, i64 {place}"
            )


def load_fields(body: LoweredBody) -> None:
    """Loads the fields of the warp and its block into LLVM values (%warp_index, %ctaidx,
    %shared...) and the mask of live lanes.
    """
    ir = body.ir
    ir.do(f"%scratch = alloca [{SCRATCH_BYTES} x i8], align 64")
    ir.do("%live.slot = alloca i32")
    _field(body, "live_in", "i32", "warp", WarpRecord.live.offset)
    ir.do("store i32 %live_in, ptr %live.slot")
    _field(body, "warp_index", "i32", "warp", WarpRecord.index.offset)
    for place, axis in enumerate("xyz"):
        _field(body, f"ctaid{axis}", "i32", "block", BlockRecord.index.offset + 4 * place)
        _field(body, f"nctaid{axis}", "i32", "block", BlockRecord.grid.offset + 4 * place)
    for name in ("shared", "local", "globals"):
        _field(body, name, "i64", "block", getattr(BlockRecord, name).offset)
    for name in ("params", "counters", "checker"):
        _field(body, name, "ptr", "block", getattr(BlockRecord, name).offset)
    _field(body, "dynamic_shared", "i32", "block", BlockRecord.dynamic_shared_bytes.offset)
    ir.do(f"%fuel = getelementptr i8, ptr %block, i64 {BlockRecord.fuel.offset}")
    ir.do("%first_thread = shl i32 %warp_index, 5")
    ir.do("%first_thread64 = zext i32 %first_thread to i64")
    ir.do(f"%frames = mul i64 %first_thread64, {body.cx.layout.frame_bytes}")
    ir.do("%local_base = add i64 %local, %frames")


def load_resume(body: LoweredBody) -> None:
    """Loads %resume, the number of the point where the warp resumes."""
    _field(body, "resume", "i32", "warp", WarpRecord.resume.offset)


def _field(body: LoweredBody, name: str, type_: str, of: str, offset: int) -> None:
    body.ir.do(f"%{name}.at = getelementptr i8, ptr %{of}, i64 {offset}")
    body.ir.do(f"%{name} = load {type_}, ptr %{name}.at")


def number_threads(body: LoweredBody) -> None:
    """Computes %tidx, %tidy, %tidz from the index of the warp: scalars where uniform or affine,
    else vectors.
    """
    ir, (x, y, _) = body.ir, body.cx.block
    number = ir.splat("%first_thread", "i32")
    ir.do(f"%thread_number = add <{LANES} x i32> {number}, {IOTA}")
    for axis, operation, divisor in (("x", "urem", x), ("y", "udiv", x), ("z", "udiv", x * y)):
        is_vector = thread_index_variance(f"%tid.{axis}", body.cx.block) is VARYING
        kind, of = integer(32, is_vector), "%thread_number" if is_vector else "%first_thread"
        text = f"{operation} {kind} {of}, {_constant(divisor, is_vector)}"
        if axis == "y":
            text = f"urem {kind} {ir.get(text)}, {_constant(y, is_vector)}"
        ir.do(f"%tid{axis} = {text}")


def _constant(number: int, is_vector: bool) -> str:
    return f"splat (i32 {number})" if is_vector else str(number)
