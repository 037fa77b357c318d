"""The control flow graph of a kernel.

Basic blocks are numbered in reverse post-order, so that a block comes before everything that is
only reached through it; `exit`, one more than the last number, is where threads exit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evoengine.emulator.ptx.syntax import Instruction


@dataclass
class Node:
    """One basic block: its instructions and its successors."""

    label: str
    instructions: list[Instruction]
    taken: int | None = None  # target of the branch at its end
    fallthrough: int | None = None  # next block otherwise; None if it always branches or exits
    live_in: frozenset[str] = frozenset()  # registers that are live at its start

    @property
    def last(self) -> Instruction | None:
        """Its last instruction; None when it is empty."""
        return self.instructions[-1] if self.instructions else None

    @property
    def successors(self) -> tuple[int, ...]:
        """The numbers of the blocks that may follow."""
        return tuple(
            dict.fromkeys(item for item in (self.taken, self.fallthrough) if item is not None)
        )

    @property
    def suspension(self) -> Instruction | None:
        """The instruction at its end at which the warp may be suspended; None if there is none."""
        last = self.last
        return last if last is not None and suspends(last) else None


@dataclass
class ControlFlowGraph:
    """The basic blocks of a kernel, in reverse post-order."""

    nodes: list[Node]
    # immediate post-dominator of each block
    post_dominator: list[int] = field(default_factory=list)
    loop_headers: frozenset[int] = frozenset()  # every cycle contains one of them

    @property
    def exit(self) -> int:
        """The number that stands for the exit of the function."""
        return len(self.nodes)

    def influence(self, branch: int) -> frozenset[int]:
        """The influence region of `branch`: blocks that are reached before all of its paths meet
        again.
        """
        join = self.post_dominator[branch]
        return self._reached(
            [item for item in self.nodes[branch].successors if item != join], without=join
        )

    def reachable(self, start: int) -> frozenset[int]:
        """`start` and every block that may follow it."""
        return self._reached([start])

    def _reached(self, starts: list[int], without: int = -1) -> frozenset[int]:
        seen, stack = set(starts), list(starts)
        while stack:
            fresh = [
                item
                for item in self.nodes[stack.pop()].successors
                if item != without and item not in seen
            ]
            seen.update(fresh)
            stack += fresh
        return frozenset(seen)


def suspends(instruction: Instruction) -> bool:
    """Whether a warp may be suspended at this instruction so that others run."""
    return waits_for_block(instruction) or instruction.op == "yield"


def waits_for_block(instruction: Instruction) -> bool:
    """Whether it is a barrier of the block at which a warp waits."""
    is_barrier = instruction.op in ("bar", "barrier")
    return is_barrier and not instruction.has("warp") and not instruction.has("arrive")
