"""The graph of a kernel's blocks.

Blocks are numbered in reverse post-order, so that a block comes before everything that
is only reached through it; `exit`, one more than the last number, is where threads end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evoengine.emulator.ptx.syntax import Instruction


@dataclass
class Node:
    """One block of the flow: its instructions and where it goes."""

    label: str
    instructions: list[Instruction]
    taken: int | None = None  # where a branch at its end goes
    falls: int | None = None  # where it goes otherwise; None when it always branches or ends
    live_in: frozenset[str] = frozenset()  # registers whose value is wanted here or later

    @property
    def last(self) -> Instruction | None:
        """Its last instruction; None when it is empty."""
        return self.instructions[-1] if self.instructions else None

    @property
    def successors(self) -> tuple[int, ...]:
        """The blocks that may follow."""
        return tuple(dict.fromkeys(item for item in (self.taken, self.falls) if item is not None))

    @property
    def waits(self) -> Instruction | None:
        """The instruction at its end at which a warp may stop to let others run."""
        last = self.last
        return last if last is not None and suspends(last) else None


@dataclass
class Flow:
    """The graph of a kernel's blocks, in reverse post-order."""

    nodes: list[Node]
    post_dominator: list[int] = field(default_factory=list)  # immediate; `exit` where there is none
    loop_headers: frozenset[int] = frozenset()  # every way round a loop passes one of them

    @property
    def exit(self) -> int:
        """The number of the place where threads end."""
        return len(self.nodes)

    def influence(self, branch: int) -> frozenset[int]:
        """The blocks that are reached from `branch` before all of its paths meet again."""
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
    """Whether a warp may stop at this instruction to let others run."""
    if instruction.op in ("bar", "barrier"):
        return not instruction.has("warp") and not instruction.has("arrive")
    return instruction.op == "yield"
