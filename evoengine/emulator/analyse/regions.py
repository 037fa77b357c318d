"""Regions of divergence: the blocks between a divergent branch and the block where its lanes
reconverge.

Code outside of regions runs for all lanes at once; in a region every block runs under a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph

# of one branch: the blocks up to its reconvergence point (its influence region), and that point
Influence = tuple[frozenset[int], int]


@dataclass(frozen=True)
class Region:
    """Blocks in which only some lanes may run; all lanes reconverge at block `join`."""

    blocks: tuple[int, ...]  # in the order in which they are run
    join: int


def influences(cfg: ControlFlowGraph, is_uniform: Callable[[str], bool]) -> list[Influence]:
    """The influence of every divergent branch; `is_uniform` says whether a predicate is uniform."""
    found = []
    for number, node in enumerate(cfg.nodes):
        last = node.last
        if (
            last is not None
            and last.op == "bra"
            and last.guard
            and not is_uniform(last.guard.register.name)
        ):
            found.append(_until_all_meet(cfg, cfg.influence(number), cfg.post_dominator[number]))
    return found


def _until_all_meet(cfg: ControlFlowGraph, blocks: frozenset[int], join: int) -> Influence:
    """The influence of a branch, extended to the exit of the function if it contains a barrier.

    Lanes that do not wait at the barrier must not wait for the others at the join either. A GPU's
    barrier counts exited lanes as arrived, so `if (i >= n) return;` before barriers works, and so
    does a branch of which one side has a barrier, as long as all threads reach some barrier or
    exit. Lanes that waited at the join for the others would block that very barrier.
    """
    if join == cfg.exit or not any(cfg.nodes[number].suspension for number in blocks):
        return blocks, join
    return blocks | cfg.reachable(join), cfg.exit


def regions_of(branch_influences: Iterable[Influence]) -> list[Region]:
    """Merges overlapping influences into regions, because a lane can be in one block only.

    Exactly one of the joins lies outside of the merged blocks: two joins j and k both post-dominate
    a block that the influences share, so one post-dominates the other, say k; then j is on a path
    to k and thus in k's influence.
    """
    groups: list[tuple[frozenset[int], frozenset[int]]] = []  # blocks, joins; no two share a block
    for blocks, join in branch_influences:
        if not blocks:
            continue
        touching = [group for group in groups if group[0] & blocks]
        whole = blocks.union(*(group[0] for group in touching))
        joins = frozenset((join,)).union(*(group[1] for group in touching))
        groups = [*(group for group in groups if not group[0] & blocks), (whole, joins)]
    found = []
    for blocks, joins in groups:
        (outside,) = joins - blocks
        found.append(Region(tuple(sorted(blocks)), outside))
    return found
