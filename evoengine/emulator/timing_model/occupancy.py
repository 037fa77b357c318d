"""Occupancy: how many blocks of a kernel are resident on an SM, by the rules of NVIDIA's
cuda_occupancy.h.
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.emulator_errors import LaunchRefused
from evoengine.emulator.targets import REGISTER_UNIT, REGISTERS_PER_SM, SCHEDULERS, WARP, TargetGpu

# allocation unit of shared memory in bytes from 8.0 on: cuda_occupancy.h, shared memory allocation
# size
SHARED_UNIT = 128
SHARED_UNIT_TURING = 256


@dataclass(frozen=True)
class Occupancy:
    """Blocks resident on one SM, their warps, and what limits them: warps, blocks, registers or
    shared memory.
    """

    blocks: int
    warps: int
    limiter: str
    share: float  # of the SM's maximum number of warps


def occupancy(target: TargetGpu, *, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """The occupancy of blocks of `threads`, with `registers` per thread and `shared_bytes` per
    block, static and dynamic.

    Raises LaunchRefused if no block fits.
    """
    if threads < 1 or registers < 0 or shared_bytes < 0:
        raise ValueError(
            f"expected threads >= 1, registers and shared_bytes >= 0, got {threads}, {registers},"
            f" {shared_bytes}"
        )
    warps = -(-threads // WARP)
    limits = {
        "blocks": target.blocks_per_sm,
        "warps": target.warps_per_sm // warps,
        "registers": _by_registers(warps, registers),
        "shared": _by_shared(target, shared_bytes),
    }
    limiter = min(limits, key=lambda name: limits[name])
    if limits[limiter] < 1:
        raise LaunchRefused(
            f"no block of {threads} threads, {registers} registers per thread and {shared_bytes}"
            f" bytes of shared memory fits on {target.title}: {limiter}"
        )
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * warps, limiter, blocks * warps / target.warps_per_sm)


def _by_registers(warps: int, registers: int) -> int:
    """Blocks that the register file holds: a quarter of it belongs to each quarter of an SM, and a
    warp is in one.
    """
    of_warp = -(-max(registers, 1) * WARP // REGISTER_UNIT) * REGISTER_UNIT
    return REGISTERS_PER_SM // SCHEDULERS // of_warp * SCHEDULERS // warps


def _by_shared(target: TargetGpu, shared_bytes: int) -> int:
    if shared_bytes > target.shared_per_block:
        return 0
    unit = SHARED_UNIT_TURING if target.arch == "sm_75" else SHARED_UNIT
    of_block = -(-(shared_bytes + target.shared_reserved) // unit) * unit
    return target.shared_per_sm // of_block if of_block else target.blocks_per_sm
