"""Post-dominators: where all ways from a branch meet again.

A branch at which lanes part opens a region; behind its immediate post-dominator every lane that has
not ended runs again, so code there needs no mask.
"""

from __future__ import annotations

from collections.abc import Sequence


def post_dominators(successors: Sequence[tuple[int, ...]]) -> list[int]:
    """The immediate post-dominator of every block; len(successors) stands for the end of the
    function.

    Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm (2001), on the graph with its edges
    turned round.
    """
    exit_ = len(successors)
    after = [items or (exit_,) for items in successors]
    before = _turned(after)
    order = _post_order(before, exit_)
    rank = {number: place for place, number in enumerate(order)}
    found = {exit_: exit_}
    changed = True
    while changed:
        changed = False
        for number in reversed(order[:-1]):
            first, *others = (item for item in after[number] if item in found)
            for other in others:
                first = _common(found, rank, first, other)
            changed |= found.get(number) != first
            found[number] = first
    return [found[number] for number in range(exit_)]


def _turned(after: list[tuple[int, ...]]) -> list[list[int]]:
    """The edges the other way round.

    A loop that is left only by exits of some lanes, or never, reaches no end; without one its
    blocks would have no post-dominator. So the last block of such a loop gets an edge to the end,
    in `after` too.
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
    """What is reached from `start`, each after everything that is reached through it."""
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


def _common(found: dict[int, int], rank: dict[int, int], a: int, b: int) -> int:
    """The nearest post-dominator that two blocks share."""
    while a != b:
        while rank[a] < rank[b]:
            a = found[a]
        while rank[b] < rank[a]:
            b = found[b]
    return a
