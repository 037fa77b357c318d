"""Regions of divergence: the blocks between a branch at which lanes part and the place where they
meet again.

Code outside of regions runs for all lanes at once; in a region every block runs for some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from evoengine.emulator.analyse.control_flow_graph import Flow

# of one branch: the blocks up to where its ways meet, and that place
Influence = tuple[frozenset[int], int]


@dataclass(frozen=True)
class Region:
    """Blocks in which only some lanes may run; all lanes meet again at `join`."""

    blocks: tuple[int, ...]  # in their order, which is the one they are run in
    join: int


def influences(flow: Flow, is_uniform: Callable[[str], bool]) -> list[Influence]:
    """Of every branch at which lanes part; `is_uniform` says whether a predicate is the same in all
    lanes.
    """
    found = []
    for number, node in enumerate(flow.nodes):
        last = node.last
        if (
            last is not None
            and last.op == "bra"
            and last.guard
            and not is_uniform(last.guard.register.name)
        ):
            found.append(_until_all_meet(flow, flow.influence(number), flow.post_dominator[number]))
    return found


def _until_all_meet(flow: Flow, blocks: frozenset[int], join: int) -> Influence:
    """Where some lanes wait at a barrier the others do not wait for them at the join: they go on to
    their end.

    A GPU's barrier counts lanes that have ended as arrived, so `if (i >= n) return;` in front of
    barriers works, and so does a branch whose other side has a barrier, as long as all threads
    reach some barrier or end. Lanes that stood at the join until the others came back from the
    barrier would hold up that very barrier.
    """
    if join == flow.exit or not any(flow.nodes[number].waits for number in blocks):
        return blocks, join
    return blocks | flow.reachable(join), flow.exit


def regions_of(parts: Iterable[Influence]) -> list[Region]:
    """Overlapping influences become one region, because a lane can be in one place only.

    Of their joins one lies outside. Two of them, j and k, both post-dominate a block that the
    influences share, so one post-dominates the other, say k; then j is on the way to k and thus in
    k's influence.
    """
    groups: list[tuple[frozenset[int], frozenset[int]]] = []  # blocks, joins; no two share a block
    for blocks, join in parts:
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
