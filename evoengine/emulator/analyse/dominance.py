"""Dominators, and post-dominators: the blocks where all paths from a branch meet again.

A divergent branch opens a region. From its immediate post-dominator on, every lane that has not
exited runs again, so code there needs no mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def post_dominators(successors: Sequence[tuple[int, ...]]) -> list[int]:
    """The immediate post-dominator of every block; len(successors) is the function's exit."""
    exit_ = len(successors)
    after = [items or (exit_,) for items in successors]
    before = _edges_from_exit(after)
    # the dominators of the graph with its edges reversed
    found = dominators(post_order(before, exit_), after)
    return [found[number] for number in range(exit_)]


def dominators(order: Sequence[int], before: Sequence[Sequence[int]]) -> dict[int, int]:
    """The immediate dominator of every node in `order`, the post-order of those that its last one
    reaches; `before` has the predecessors of each.

    Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm (2001).
    """
    rank = {number: place for place, number in enumerate(order)}
    found = {order[-1]: order[-1]}
    changed = True
    while changed:
        changed = False
        for number in reversed(order[:-1]):
            first, *others = (item for item in before[number] if item in found)
            for other in others:
                first = _nearest_common(found, rank, first, other)
            changed |= found.get(number) != first
            found[number] = first
    return found


def reversed_edges(after: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """The predecessors of each of `count` nodes; `after` has the successors of the first ones."""
    before: list[list[int]] = [[] for _ in range(count)]
    for number, items in enumerate(after):
        for item in items:
            before[item].append(number)
    return before


def loop_body(before: Sequence[Sequence[int]], header: int, ends: Iterable[int]) -> set[int]:
    """What reaches one of `ends` without passing `header`, and `header`; `before` has the
    predecessors of each node.
    """
    found, waiting = {header}, list(ends)
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += before[number]
    return found


def _edges_from_exit(after: list[tuple[int, ...]]) -> list[list[int]]:
    """The predecessors of every block.

    A loop that is left only by the exit of some lanes, or never, does not reach the function's
    exit, so its blocks would have no post-dominator. The last block of such a loop gets an edge to
    the exit, in `after` too.
    """
    exit_ = len(after)
    while True:
        before = reversed_edges(after, exit_ + 1)
        reached = set(post_order(before, exit_))
        lost = [number for number in range(exit_) if number not in reached]
        if not lost:
            return before
        after[lost[-1]] = (*after[lost[-1]], exit_)


def post_order(edges: Sequence[Sequence[int]], start: int) -> list[int]:
    """The nodes that are reachable from `start`, in post-order."""
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
    """The nearest dominator that two nodes share."""
    while a != b:
        while rank[a] < rank[b]:
            a = found[a]
        while rank[b] < rank[a]:
            b = found[b]
    return a
