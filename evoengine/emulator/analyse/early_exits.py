"""Blocks that a warp may run with some of its lanes only, because the others have exited."""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph
from evoengine.emulator.analyse.lane_variance import UNIFORM
from evoengine.emulator.analyse.uniformity import UniformityInfo


def blocks_after_exits(cfg: ControlFlowGraph, uniformity: UniformityInfo) -> frozenset[int]:
    """The blocks that lanes of a warp may run after other lanes have exited; an exit that all lanes
    take together does not count.
    """
    after_exit: set[int] = set()
    for number, node in enumerate(cfg.nodes):
        for item in node.instructions:
            if item.op not in ("ret", "exit"):
                continue
            if number in uniformity.region_of:
                after_exit.add(uniformity.regions[uniformity.region_of[number]].join)
            elif item.guard and uniformity.variance_of[item.guard.register.name] is not UNIFORM:
                after_exit.update(node.successors)
    return frozenset().union(*(cfg.reachable(number) for number in after_exit if number < cfg.exit))
