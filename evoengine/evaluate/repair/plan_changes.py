"""Changes of a launch plan that leave its kernels as they are: none is compiled again."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evoengine.evaluate.repair.source_change import SourceChange

_KEY = re.compile(r"^([a-z]\w*):", re.MULTILINE)
_SECTIONS = frozenset(("let", "scratch", "launches"))


@dataclass(frozen=True)
class PlanChanges:
    """Changes that are bound one after another to the machine code of the kernel as it is."""

    changes: tuple[SourceChange, ...]


def is_of_plan(source: str, header_end: int, change: SourceChange) -> bool:
    """Whether a change stands where a plan has sizes, buffers and launches. Where a kernel's
    template has one of the sizes as an argument, other code is needed all the same.
    """
    return all(
        piece.end <= header_end and _section(source, piece.start) in _SECTIONS
        for piece in change.pieces
    )


def _section(source: str, place: int) -> str:
    """The key of the header under which a place stands."""
    found = [key[1] for key in _KEY.finditer(source, 0, place)]
    return found[-1] if found else ""
