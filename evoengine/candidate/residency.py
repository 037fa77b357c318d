"""How many blocks of a kernel an SM can hold, and what limits them.

Sources: CUDA C++ Programming Guide 13.0, "Technical Specifications per Compute Capability", and the
occupancy calculator of the CUDA toolkit (cuda_occupancy.h): registers are given out to warps in
units of 256 on each of four parts of an SM, shared memory in units of 128 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.candidate.arch import WARP_SIZE, limits_of_arch
from evoengine.records import KernelResources

_SHARED_KIB = {
    "sm_75": 64,
    "sm_80": 164,
    "sm_86": 100,
    "sm_87": 164,
    "sm_89": 100,
    "sm_90": 228,
    "sm_100": 228,
    "sm_103": 228,
    "sm_120": 100,
}
_BLOCKS = {
    "sm_75": 16,
    "sm_80": 32,
    "sm_86": 16,
    "sm_87": 16,
    "sm_89": 24,
    "sm_90": 32,
    "sm_100": 32,
    "sm_103": 32,
    "sm_120": 24,
}
_PARTS, _REGISTERS_OF_PART, _REGISTER_UNIT = 4, 16384, 256
_RESERVED_SHARED_BYTES = 1024  # of a block, from compute capability 8.0 on


@dataclass(frozen=True)
class Residency:
    """What fits on an SM at once."""

    blocks: int
    warps: int
    most_warps: int
    limiters: tuple[str, ...]  # of registers, shared memory, warps, blocks

    @property
    def share(self) -> float:
        """The theoretical occupancy."""
        return self.warps / self.most_warps


def residency(kernel: KernelResources) -> Residency | None:
    """What fits of `kernel` with its largest block; None where its block or its architecture is
    not known.
    """
    arch = kernel.arch.rstrip("af")
    if not kernel.block_threads or arch not in _SHARED_KIB:
        return None
    most_warps = limits_of_arch(arch).threads_per_sm // WARP_SIZE
    warps = -(-kernel.block_threads // WARP_SIZE)
    shared = kernel.static_shared_bytes + kernel.dynamic_shared_bytes
    unit = 256 if arch == "sm_75" else 128
    shared = _up(shared + (0 if arch == "sm_75" else _RESERVED_SHARED_BYTES), unit)
    of_warp = _up(max(1, kernel.registers) * WARP_SIZE, _REGISTER_UNIT)
    fits = {
        "registers": _REGISTERS_OF_PART // of_warp * _PARTS // warps,
        "warps": most_warps // warps,
        "blocks": _BLOCKS[arch],
    }
    if shared:
        fits["shared memory"] = _SHARED_KIB[arch] * 1024 // shared
    blocks = min(fits.values())
    limiters = tuple(name for name, count in fits.items() if count == blocks)
    return Residency(blocks, blocks * warps, most_warps, limiters)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
