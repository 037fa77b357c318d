"""One change of a kernel's source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceChange:
    """`new` in place of what stands from `start` to `end` of the source.

    `kind` says what sort of mistake it mends; change_order.WEIGHTS has the likely ones, and
    change_meaning the words for each.
    """

    start: int
    end: int
    new: str
    kind: str

    def applied(self, source: str) -> str:
        """The source with the change."""
        return source[: self.start] + self.new + source[self.end :]

    def line(self, source: str) -> int:
        """The line of the change, from 1."""
        return source.count("\n", 0, self.start) + 1
