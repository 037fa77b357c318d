"""What one execution of an instruction by a warp accesses, as checked mode counted it."""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.emulator.check.findings import SiteCounts
from evoengine.emulator.ptx.syntax import Instruction
from evoengine.emulator.timing_model.pipes import classify

# A fragment in global memory has no instruction of its own: each of its four 8 x 8 parts is loaded
# by one instruction, in which a thread has 4 or 8 bytes of a row, so that two of them access each
# line (as in the machine code that NVRTC 13.0 makes of tests/honest/matmul_wmma_from_global.cu)
FRAGMENT_PARTS = 4.0
FRAGMENT_LINES = 2.0


@dataclass(frozen=True)
class SiteMemory:
    """Means of one execution by a warp."""

    requests: float = 1.0  # machine instructions that reach memory
    wavefronts: float = 0.0  # of shared memory
    l2_sectors: float = 0.0  # from and to L2, if L1 keeps all that a block has loaded
    lines: float = 0.0  # of 128 bytes that L1 looks up, of global and local memory
    missed: float = 0.0  # part of the loads that wait for L2, if L1 keeps what a block has loaded


def site_memory(
    instruction: Instruction, counts: SiteCounts, executions: float
) -> SiteMemory | None:
    """The means of an instruction that warps executed so often; None for one that was counted
    elsewhere: asynchronous copies.
    """
    if instruction.op == "cp" or executions <= 0 or not counts.requests:
        return None
    if counts.units and not counts.lines:
        requests = classify(instruction.op, instruction.modifiers).memory_instructions
        return SiteMemory(requests, wavefronts=counts.units / executions)
    lines, sectors = counts.lines / executions, counts.units / executions
    if not counts.units:
        return SiteMemory(lines=lines)
    loads = instruction.op in ("ld", "ldu") or (
        instruction.op == "wmma" and "load" in instruction.modifiers
    )
    missed = counts.fresh / counts.requests if loads else 1.0
    fragment = instruction.op == "wmma"
    return SiteMemory(
        FRAGMENT_PARTS if fragment else 1.0,
        l2_sectors=sectors * missed,
        lines=lines * (FRAGMENT_LINES if fragment else 1.0),
        missed=missed,
    )
