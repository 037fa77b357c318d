"""Blocks before which the lanes of a warp must wait for those that spin."""

from __future__ import annotations

from evoengine.emulator.analyse.control_flow_graph import Node
from evoengine.emulator.ptx.syntax import Instruction, Integer

# all lanes that have not exited take part, by a member mask with all bits
_MEETINGS = frozenset(("shfl", "vote", "match", "redux"))
_EVERY = (-1, 0xFFFFFFFF)
_STORES = frozenset(("st", "red", "atom"))


def is_meeting(node: Node) -> bool:
    """Whether the lanes that reach a block must wait at its start for all others of their warp: it
    has an exchange between all of them, and nothing before it that others may spin for.
    """
    for item in node.instructions:
        if item.op in _STORES:
            return False
        if item.op in _MEETINGS or (item.op == "bar" and item.has("warp")):
            return _is_of_every_lane(item)
    return False


def _is_of_every_lane(item: Instruction) -> bool:
    mask = item.operands[-1] if item.operands else None
    return isinstance(mask, Integer) and mask.value in _EVERY
