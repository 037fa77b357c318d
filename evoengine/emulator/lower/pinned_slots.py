"""Which values stay in memory because a dispatcher would need a phi for each of them.

LLVM promotes the slots of registers to values. What lives from one block of a region to another
then has a phi in its dispatcher, with an operand for each block: with hundreds of blocks these are
hundreds of thousands of operands, which take most of the code generator's time.
"""

from __future__ import annotations

from collections.abc import Iterator

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.uniformity import Region, UniformityInfo
from evoengine.emulator.lower.emitter import Emitter

MOST_BLOCKS = 32  # of a region whose dispatcher has phis


def _is_large(region: Region) -> bool:
    """Whether the dispatcher of a region shall have no phis."""
    return len(region.blocks) > MOST_BLOCKS


def pinned_registers(cfg: ControlFlowGraph, uniformity: UniformityInfo) -> Iterator[str]:
    """The registers that live from one block of a large region to another. Those that no block of
    it writes, too: where a warp resumes they are loaded once more.
    """
    names = set[str]()
    for region in filter(_is_large, uniformity.regions):
        names.update(*(cfg.nodes[number].live_in for number in region.blocks))
    yield from sorted(names)


def declare_mask(ir: Emitter, region: Region, slot: str, bits: int = 32) -> None:
    """Emits a slot of a region for a mask, which is empty."""
    ir.do(f"{slot} = alloca i{bits}")
    ir.do(f"store i{bits} 0, ptr {slot}")
    if _is_large(region):
        pin(ir, slot)


def pin(ir: Emitter, slot: str) -> None:
    """Emits what keeps a slot in memory: an instruction that has its address."""
    ir.do(f'call void asm sideeffect "", "r"(ptr {slot})')
