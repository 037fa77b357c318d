"""What a search for the change that makes a kernel right has found and tried."""

from __future__ import annotations

from dataclasses import dataclass, field

from evoengine.evaluate.repair.source_change import SourceChange


@dataclass
class FoundRepairs:
    """The changes that make every output right, the likeliest first, and what was tried."""

    changes: list[SourceChange] = field(default_factory=list)
    # those of them that are wrong with other sizes or tunables
    by_chance: list[SourceChange] = field(default_factory=list)
    known: int = 0  # changes of the kernel altogether
    launched: int = 0
    compilations: int = 0
    refuted: int = 0  # right on the wrong inputs, wrong elsewhere
    seconds: float = 0.0
