"""How often a loop is entered."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph


def entries(
    cfg: ControlFlowGraph, header: int, body: Collection[int], times: Sequence[float]
) -> float:
    """How often a loop with these blocks is entered from outside, at most; `times` says how often
    each block is executed.
    """
    return sum(
        times[number]
        for number, node in enumerate(cfg.nodes)
        if number not in body and header in node.successors
    )
