"""Changes that make the outputs right and may only keep the mistake from showing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evoengine.evaluate.repair.source_change import SourceChange

# Other sizes of a plan give other blocks and threads other work: a mistake in what they do with it
# may not show itself then. The begins of their kinds:
_OF_SIZES = (
    *("number of the plan", "name of the plan", "power of two in the plan"),
    *("grid that lacks", "size of the plan that lacks", "factor of the plan"),
    "size of the plan not rounded up",
    *("argument of the plan", "argument of another launch"),
)
# What the findings say where a size of the plan is wrong.
_WRONG_SIZE = re.compile(
    r"never written|held before|nothing was written|out of bounds|beyond its end|no multiple|"
    r"\btail\b|left out|the last ones?\b|uninitialised"
)
_BY_CHANCE = ("condition of another place", "condition added")


def may_avoid(source: str, change: SourceChange, told: Sequence[str]) -> bool:
    """Whether a change may keep a part of a kernel from running, or from being wrong, so that
    something is right which is not what was meant. `told` are the findings of the verdict.
    """
    if change.switches_off(source) or change.kind in _BY_CHANCE or _drops_swizzle(source, change):
        return True
    return change.kind.startswith(_OF_SIZES) and not any(map(_WRONG_SIZE.search, told))


def _drops_swizzle(source: str, change: SourceChange) -> bool:
    """Whether it takes the XOR out of a function of the kernel's own: those that write and those
    that read do without it then, whichever of them was wrong.
    """
    head = source.rfind("__device__", 0, change.start)
    if head < 0 or source.rfind("__global__", 0, change.start) > head:
        return False
    old = source[change.start : change.end]
    return old.count("^") > change.new.count("^")
