"""Whether blocks of a kernel take their work from a queue."""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.registers import read, written

_FLOATS = frozenset(("f16", "f16x2", "bf16", "bf16x2", "f32", "f64"))


def takes_work(cfg: ControlFlowGraph) -> bool:
    """Whether there is an integer atomic in a loop whose result something reads.

    On a GPU such blocks share the work evenly. The emulator runs blocks one after the other, and
    the first ones empty the queue: what each has executed says nothing about the longest.
    """
    used = {name for node in cfg.nodes for item in node.instructions for name in read(item)}
    return any(
        item.op == "atom"
        and not _FLOATS.intersection(item.modifiers)
        and used.intersection(written(item))
        and _in_loop(cfg, position)
        for position, node in enumerate(cfg.nodes)
        for item in node.instructions
    )


def _in_loop(cfg: ControlFlowGraph, position: int) -> bool:
    return any(
        position in cfg.reachable(after)
        for after in cfg.nodes[position].successors
        if after != cfg.exit
    )
