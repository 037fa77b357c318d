"""Basic blocks that a GPU runs as one piece of straight-line code.

A short condition around a few instructions, such as the bounds of a load, is no branch in machine
code: ptxas predicates the instructions. Loads behind such conditions then overlap like any others,
and a loop whose body becomes one piece is unrolled (seen in the machine code that NVRTC 13.0 makes
of tests/honest/matmul_macro_tiles.cu: four predicated loads, then four stores).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evoengine.emulator.analyse.control_flow_graph import ControlFlowGraph, Node

# PTX instructions of a condition that is predicated; more are skipped by a branch. Estimate.
PREDICATED = 32
# the same with loads among them: NVRTC 13.0 leaves a branch around each row of
# tests/structures/blur_marching_columns.cu, 19 instructions with five loads
PREDICATED_WITH_LOADS = 16
# executions of a conditional block, relative to those of the code before it, from which on it
# counts as part of that code
MOSTLY = 0.5
_ENDS = frozenset(("ret", "exit", "trap"))


@dataclass
class StraightCode:
    """Basic blocks in the order in which a warp runs them, the first one always."""

    nodes: list[int]
    # of each block: the predicates under which it runs
    conditions: dict[int, frozenset[str]] = field(default_factory=dict)
    repeats: bool = False  # whether it is the whole body of a loop
    # blocks that only lead from its end to its beginning
    back: list[int] = field(default_factory=list)

    def is_predicated(self, number: int) -> bool:
        """Whether the branch at the end of a block is gone: the piece goes on either way."""
        return number != self.nodes[-1]

    @property
    def first(self) -> int:
        """The block that always runs."""
        return self.nodes[0]


def straight_code(cfg: ControlFlowGraph, times: Sequence[float]) -> list[StraightCode]:
    """The pieces of a kernel, each of its basic blocks in one; `times`: executions of each block by
    warps.

    Blocks that only branch on are in none: clang ends loops so, `@%p bra end; bra.uni begin`, of
    which ptxas makes one branch.
    """
    return _Merging(cfg, times).pieces()


class _Merging:
    """Pieces by the number of their first block, with the edges between them."""

    def __init__(self, cfg: ControlFlowGraph, times: Sequence[float]) -> None:
        self._cfg, self._times = cfg, times
        count = len(cfg.nodes)
        self._jumps = [number for number in range(count) if _only_branches(cfg.nodes[number])]
        own = [number for number in range(count) if number not in self._jumps]
        self._pieces = {number: StraightCode([number], {number: frozenset()}) for number in own}
        self._after = {
            number: {_behind_jumps(cfg, item) for item in cfg.nodes[number].successors} - {count}
            for number in own
        }
        self._before: dict[int, set[int]] = {number: set() for number in own}
        for number, successors in self._after.items():
            for after in successors:
                self._before[after].add(number)

    def pieces(self) -> list[StraightCode]:
        """Merges until nothing changes; inner conditions are merged before outer ones."""
        changed = True
        while changed:
            changed = False
            for number in sorted(self._pieces, reverse=True):
                while number in self._pieces and self._grows(number):
                    changed = True
        for number, piece in self._pieces.items():
            piece.repeats = number in self._after[number]
            piece.back = [jump for jump in self._jumps if self._leads_back(jump, piece)]
        return [self._pieces[number] for number in sorted(self._pieces)]

    def _leads_back(self, jump: int, piece: StraightCode) -> bool:
        """Whether a block that only branches leads from the end of a piece to its beginning."""
        last = self._cfg.nodes[piece.nodes[-1]]
        return jump in last.successors and _behind_jumps(self._cfg, jump) == piece.first

    def _grows(self, number: int) -> bool:
        """Merges a condition or the only successor into a piece; returns whether it did."""
        if self._last(number).suspension is not None:
            return False
        after = self._after[number]
        if len(after) == 1:
            (only,) = after
            if only != number and self._before[only] == {number}:
                self._append(number, only, frozenset())
                return True
            return False
        return len(after) == 2 and self._predicates(number)

    def _predicates(self, number: int) -> bool:
        """Merges the blocks under the condition at the end of a piece, if they are short, meet
        again at once and run mostly.
        """
        last = self._last(number).last
        if last is None or last.guard is None:
            return False
        sides = [side for side in self._after[number] if self._is_condition_of(number, side)]
        joins = {join for side in sides for join in self._after[side]}
        if not sides or len(joins) != 1 or not self._after[number] <= joins | set(sides):
            return False
        if joins & {number, *sides} or not self._is_mostly_run(number, sides):
            return False
        for side in sorted(sides):
            self._append(number, side, frozenset((last.guard.register.name,)))
        self._after[number] = joins
        return True

    def _is_condition_of(self, number: int, side: int) -> bool:
        """Whether a piece only runs between this one and one other, and ptxas would predicate
        it.
        """
        nodes = [self._cfg.nodes[item] for item in self._pieces[side].nodes]
        return (
            side != number
            and self._before[side] == {number}
            and len(self._after[side]) == 1
            and side not in self._after[side]
            and _is_short(nodes)
            and not any(_interrupts(node) for node in nodes)
            and not _moves_data(nodes)
        )

    def _is_mostly_run(self, number: int, sides: Sequence[int]) -> bool:
        most = max(self._times[side] for side in sides)
        return most >= MOSTLY * self._times[self._pieces[number].first] > 0

    def _append(self, number: int, other: int, condition: frozenset[str]) -> None:
        """Adds the blocks of another piece, under a condition, to the end of one."""
        piece, more = self._pieces[number], self._pieces.pop(other)
        piece.nodes += more.nodes
        piece.conditions |= {node: of | condition for node, of in more.conditions.items()}
        behind = self._after.pop(other)
        self._after[number] = behind | (self._after[number] - {other})
        del self._before[other]
        for after in behind:
            self._before[after].discard(other)
            self._before[after].add(number)

    def _last(self, number: int) -> Node:
        return self._cfg.nodes[self._pieces[number].nodes[-1]]


def _only_branches(node: Node) -> bool:
    """Whether a block does nothing but branch on, always."""
    return [(item.op, item.guard) for item in node.instructions] == [("bra", None)]


def _behind_jumps(cfg: ControlFlowGraph, number: int) -> int:
    """Where a branch to a block ends that leads to blocks which only branch on."""
    seen: set[int] = set()
    while number < cfg.exit and number not in seen and _only_branches(cfg.nodes[number]):
        seen.add(number)
        (number,) = cfg.nodes[number].successors
    return number


def _is_short(nodes: Sequence[Node]) -> bool:
    """Whether a condition around these blocks is predicated."""
    items = [item for node in nodes for item in node.instructions]
    loads = any(
        item.op == "ld" and not {"param", "local"}.intersection(item.modifiers) for item in items
    )
    return len(items) <= (PREDICATED_WITH_LOADS if loads else PREDICATED)


def _moves_data(nodes: Sequence[Node]) -> bool:
    """Whether blocks load and store: ptxas leaves a branch around the two (seen in the machine code
    that NVRTC 13.0 makes of tests/structures/filter_rows_shared_tiles.cu: eight stores, each behind
    a load of shared memory of its own, have a branch each, its loads alone are predicated).
    """
    ops = {
        item.op
        for node in nodes
        for item in node.instructions
        if not {"param", "local"}.intersection(item.modifiers)
    }
    return "st" in ops and "ld" in ops


def _interrupts(node: Node) -> bool:
    """Whether a block must not be predicated: a barrier, a call, an exit."""
    return node.suspension is not None or any(
        item.op in _ENDS or item.op == "call" for item in node.instructions
    )
