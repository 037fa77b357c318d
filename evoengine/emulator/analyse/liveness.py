"""Live registers: those that a warp saves at a barrier, and those that need no mask because no
other block reads them.
"""

from __future__ import annotations

from collections.abc import Collection

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph, Node
from evoengine.emulator.analyse.regions import Region
from evoengine.emulator.analyse.registers import read, written


def compute_liveness(cfg: ControlFlowGraph, registers: Collection[str]) -> None:
    """Sets `live_in` of every node to those of `registers` that are live at its start."""
    used_and_killed = [_used_and_killed(node) for node in cfg.nodes]
    uses = [used & set(registers) for used, _ in used_and_killed]
    changed = True
    while changed:
        changed = False
        for number in range(len(cfg.nodes) - 1, -1, -1):
            node = cfg.nodes[number]
            after = set[str]().union(*(cfg.nodes[item].live_in for item in node.successors))
            live = frozenset(uses[number] | (after - used_and_killed[number][1]))
            changed |= live != node.live_in
            node.live_in = live


def live_across_suspensions(cfg: ControlFlowGraph, regions: Collection[Region]) -> frozenset[str]:
    """The registers that are live where a warp resumes after it was suspended."""
    resumed = {node.fallthrough for node in cfg.nodes if node.suspension}
    for region in regions:
        if any(cfg.nodes[number].suspension for number in region.blocks):
            resumed |= {*region.blocks, region.join}
    return frozenset().union(
        *(
            cfg.nodes[number].live_in
            for number in resumed
            if number is not None and number < cfg.exit
        )
    )


def _used_and_killed(node: Node) -> tuple[set[str], set[str]]:
    """The registers that a block reads before it writes them, and those that it writes; a guarded
    write also counts as a read.
    """
    used, killed = set[str](), set[str]()
    for instruction in node.instructions:
        results = written(instruction)
        wanted = read(instruction) + (results if instruction.guard else [])
        used.update(name for name in wanted if name not in killed)
        killed.update(results)
    return used, killed
