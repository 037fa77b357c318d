"""The special registers of PTX: threadIdx, blockIdx, lane masks, clocks."""

from __future__ import annotations

from evoengine.emulator.analyse.lane_variance import UNIFORM, VARYING, Affine, thread_index_variance
from evoengine.emulator.lower.emitter import LANES, Emitter
from evoengine.emulator.lower.layout import Layout
from evoengine.emulator.lower.value import Value, lane_masks

AXES = ("x", "y", "z")
CLOCKS = ("%clock", "%clock64", "%globaltimer", "%globaltimer_lo", "%clock_hi")


def special_register(
    ir: Emitter, layout: Layout, block: tuple[int, int, int], name: str
) -> Value | None:
    """The value of special register `name` for thread blocks of `block` threads; None for one that
    is not known.
    """
    family, _, axis = name.partition(".")
    if axis in AXES:
        return _of_an_axis(block, family, axis)
    threads = block[0] * block[1] * block[2]
    constants = {
        "%nwarpid": -(-threads // LANES),
        "%nsmid": layout.sm_count,
        "%gridid": 1,
        "WARP_SZ": LANES,
    }
    if name in constants:
        return Value(UNIFORM, str(constants[name]), 32)
    if name == "%laneid":
        return Value(Affine(1, aligned=True), "0", 32)
    if name.startswith("%lanemask_"):
        masks = lane_masks(name.removeprefix("%lanemask_"))
        return None if masks is None else Value(VARYING, masks, 32)
    if name == "%warpid":
        return Value(UNIFORM, "%warp_index", 32)
    if name == "%smid":
        return Value(UNIFORM, ir.get(f"urem i32 %ctaidx, {layout.sm_count}"), 32)
    if name == "%dynamic_smem_size":
        return Value(UNIFORM, "%dynamic_shared", 32)
    if name == "%total_smem_size":
        return Value(UNIFORM, ir.get(f"add i32 %dynamic_shared, {layout.static_shared}"), 32)
    if name in CLOCKS:
        ir.declarations["@llvm.readcyclecounter"] = "declare i64 @llvm.readcyclecounter()"
        return Value(UNIFORM, ir.get("call i64 @llvm.readcyclecounter()"), 64)
    return None


def _of_an_axis(block: tuple[int, int, int], family: str, axis: str) -> Value | None:
    match family:
        case "%tid":
            return Value(thread_index_variance(f"%tid.{axis}", block), f"%tid{axis}", 32)
        case "%ntid":
            return Value(UNIFORM, str(block[AXES.index(axis)]), 32)
        case "%ctaid" | "%nctaid":
            return Value(UNIFORM, f"{family}{axis}", 32)
    return None
