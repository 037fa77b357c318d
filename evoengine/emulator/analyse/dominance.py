"""Post-dominators: the blocks where all paths from a branch meet again.

A divergent branch opens a region. From its immediate post-dominator on, every lane that has not
exited runs again, so code there needs no mask.
"""

from __future__ import annotations

from collections.abc import Sequence


def post_dominators(successors: Sequence[tuple[int, ...]]) -> list[int]:
    """The immediate post-dominator of every block; len(successors) stands for the function's exit.

    Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm (2001), on the graph with its edges
    reversed.
    """
    exit_ = len(successors)
    after = [items or (exit_,) for items in successors]
    before = _reversed_edges(after)
    order = _post_order(before, exit_)
    rank = {number: place for place, number in enumerate(order)}
    found = {exit_: exit_}
    changed = True
    while changed:
        changed = False
        for number in reversed(order[:-1]):
            first, *others = (item for item in after[number] if item in found)
            for other in others:
                first = _nearest_common(found, rank, first, other)
            changed |= found.get(number) != first
            found[number] = first
    return [found[number] for number in range(exit_)]


def _reversed_edges(after: list[tuple[int, ...]]) -> list[list[int]]:
    """The predecessors of every block.

    A loop that is left only by the exit of some lanes, or never, does not reach the function's
    exit, so its blocks would have no post-dominator. The last block of such a loop gets an edge to
    the exit, in `after` too.
    """
    exit_ = len(after)
    while True:
        before: list[list[int]] = [[] for _ in range(exit_ + 1)]
        for number, items in enumerate(after):
            for item in items:
                before[item].append(number)
        reached = set(_post_order(before, exit_))
        lost = [number for number in range(exit_) if number not in reached]
        if not lost:
            return before
        after[lost[-1]] = (*after[lost[-1]], exit_)


def _post_order(edges: Sequence[Sequence[int]], start: int) -> list[int]:
    """The blocks that are reachable from `start`, in post-order."""
    order, seen, stack = list[int](), {start}, [(start, iter(edges[start]))]
    while stack:
        number, rest = stack[-1]
        fresh = next((item for item in rest if item not in seen), None)
        if fresh is None:
            order.append(number)
            stack.pop()
        else:
            seen.add(fresh)
            stack.append((fresh, iter(edges[fresh])))
    return order


def _nearest_common(found: dict[int, int], rank: dict[int, int], a: int, b: int) -> int:
    """The nearest post-dominator that two blocks share."""
    while a != b:
        while rank[a] < rank[b]:
            a = found[a]
        while rank[b] < rank[a]:
            b = found[b]
    return a
