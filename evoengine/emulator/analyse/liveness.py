"""Which registers are wanted where: what a warp saves at a barrier, and what needs no mask because
no other block reads it.
"""

from __future__ import annotations

from collections.abc import Collection

from evoengine.emulator.analyse.control_flow_graph import Flow, Node
from evoengine.emulator.analyse.regions import Region
from evoengine.emulator.analyse.registers import read, written


def find_live(flow: Flow, registers: Collection[str]) -> None:
    """Fills in which of `registers` are alive at the start of each block."""
    used_and_killed = [_used_and_killed(node) for node in flow.nodes]
    uses = [used & set(registers) for used, _ in used_and_killed]
    changed = True
    while changed:
        changed = False
        for number in range(len(flow.nodes) - 1, -1, -1):
            node = flow.nodes[number]
            after = set[str]().union(*(flow.nodes[item].live_in for item in node.successors))
            live = frozenset(uses[number] | (after - used_and_killed[number][1]))
            changed |= live != node.live_in
            node.live_in = live


def alive_while_waiting(flow: Flow, regions: Collection[Region]) -> frozenset[str]:
    """Registers whose value is wanted behind a place where a warp may wait for others."""
    behind = {node.falls for node in flow.nodes if node.waits}
    for region in regions:
        if any(flow.nodes[number].waits for number in region.blocks):
            behind |= {*region.blocks, region.join}
    return frozenset().union(
        *(
            flow.nodes[number].live_in
            for number in behind
            if number is not None and number < flow.exit
        )
    )


def _used_and_killed(node: Node) -> tuple[set[str], set[str]]:
    """Registers that a block reads before it writes them, and those that it writes; a guarded write
    keeps what was there.
    """
    used, killed = set[str](), set[str]()
    for instruction in node.instructions:
        results = written(instruction)
        wanted = read(instruction) + (results if instruction.guard else [])
        used.update(name for name in wanted if name not in killed)
        killed.update(results)
    return used, killed
