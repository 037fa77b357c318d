"""Spin loops: loops in which a warp must let the other warps of its block run.

The warps of a block run one at a time, each until its next barrier. A warp that spins on a flag
which another warp of its block sets would never see it set, so a `yield` is inserted at the head of
every loop whose exit depends on what other threads write. Loops that merely read volatile memory
get no yield: suspending and resuming a warp costs a save and restore of its registers.
"""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph, suspends
from evoengine.emulator.analyse.dominance import loop_body, reversed_edges
from evoengine.emulator.analyse.registers import read, written
from evoengine.emulator.ptx.syntax import Instruction

# PTX ISA 8.2: loads that see the stores of other threads
SEES_OTHER_THREADS = frozenset(("volatile", "acquire", "relaxed", "mmio"))


def add_yields(cfg: ControlFlowGraph) -> bool:
    """Inserts a `yield` at the head of every spin loop; returns whether any was inserted."""
    changed = False
    for header in cfg.loop_headers:
        body = natural_loop(cfg, header)
        instructions = [item for number in body for item in cfg.nodes[number].instructions]
        if (
            not instructions
            or any(suspends(item) for item in instructions)
            or not _spins(cfg, body, instructions)
        ):
            continue
        cfg.nodes[header].instructions.insert(
            0, Instruction("yield", (), (), None, instructions[0].line, "yield")
        )
        changed = True
    return changed


def natural_loop(cfg: ControlFlowGraph, header: int) -> set[int]:
    """The blocks of the natural loop of `header`: those that reach a back edge
    without passing it.
    """
    # one node more: the function's exit
    before = reversed_edges([node.successors for node in cfg.nodes], len(cfg.nodes) + 1)
    return loop_body(before, header, (number for number in before[header] if number >= header))


def _spins(cfg: ControlFlowGraph, body: set[int], instructions: list[Instruction]) -> bool:
    """Whether the exit of a loop depends on a load that sees other threads' stores, or on the
    result of an atomic operation.
    """
    depends = {name for item in instructions if _sees_other_threads(item) for name in written(item)}
    grown = bool(depends)
    while grown:
        before = len(depends)
        depends.update(
            name for item in instructions if depends & set(read(item)) for name in written(item)
        )
        grown = len(depends) > before
    leaving = [
        item
        for number in body
        for item in cfg.nodes[number].instructions
        if item.guard and _leaves(cfg, number, body, item)
    ]
    return any(item.guard and item.guard.register.name in depends for item in leaving)


def _sees_other_threads(instruction: Instruction) -> bool:
    return instruction.op == "atom" or (
        instruction.op == "ld" and bool(SEES_OTHER_THREADS & set(instruction.modifiers))
    )


def _leaves(cfg: ControlFlowGraph, number: int, body: set[int], instruction: Instruction) -> bool:
    """Whether a guarded instruction may leave the loop."""
    if instruction.op == "bra":
        return any(after not in body for after in cfg.nodes[number].successors)
    return instruction.op in ("exit", "ret")
