"""Where a warp goes on with some of its lanes only, because the others have ended."""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import Flow
from evoengine.emulator.analyse.lane_variance import UNIFORM
from evoengine.emulator.analyse.uniformity import Shapes


def after_ends(flow: Flow, shapes: Shapes) -> frozenset[int]:
    """Blocks that lanes of a warp may run after others of it have ended. An end that all of its
    lanes come to together is none.
    """
    behind: set[int] = set()
    for number, node in enumerate(flow.nodes):
        for item in node.instructions:
            if item.op not in ("ret", "exit"):
                continue
            if number in shapes.region_of:
                behind.add(shapes.regions[shapes.region_of[number]].join)
            elif item.guard and shapes.of[item.guard.register.name] is not UNIFORM:
                behind.update(node.successors)
    return frozenset().union(*(flow.reachable(number) for number in behind if number < flow.exit))
