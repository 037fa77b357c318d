"""Where the lanes of a warp may have diverged, as far as NVIDIA's compiler can tell."""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.lane_variance import PER_LANE, THREAD
from evoengine.emulator.analyse.regions import influences
from evoengine.emulator.analyse.registers import read, written
from evoengine.emulator.ptx.syntax import Instruction, Special

_LOADS = frozenset(("ld", "ldu", "atom", "shfl", "ldmatrix", "wmma", "mma"))


def diverging_code(cfg: ControlFlowGraph) -> frozenset[int]:
    """The basic blocks between a branch that may part the lanes of a warp and the block where they
    meet again.

    Predicates that depend on the thread's index or on loaded values may do so; what is only known
    from the size of a thread block does not count, because a compiler does not know that.
    """
    instructions = [item for node in cfg.nodes for item in node.instructions]
    varying = {name for item in instructions if _differs(item) for name in written(item)}
    before = -1
    while len(varying) > before:
        before = len(varying)
        for item in instructions:
            if varying.intersection(read(item)):
                varying.update(written(item))
    parts = influences(cfg, lambda name: name not in varying)
    return frozenset[int]().union(*(blocks for blocks, _ in parts))


def _differs(item: Instruction) -> bool:
    """Whether the result of an instruction may differ between lanes, whatever its operands are."""
    if item.op in _LOADS:
        return "param" not in item.modifiers and "const" not in item.modifiers
    return any(
        isinstance(operand, Special) and (operand.name in PER_LANE or operand.name in THREAD)
        for operand in item.operands
    )
