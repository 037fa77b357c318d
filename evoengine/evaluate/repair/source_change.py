"""One change of a kernel's source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_OFF = re.compile(r"[01](\.0*f?)?")
_FLOAT = re.compile(r"\d*\.\d*f?")


@dataclass(frozen=True)
class SourceChange:
    """`new` in place of what stands from `start` to `end` of the source.

    `kind` says what sort of mistake it mends; change_weights.WEIGHTS has the likely ones, and
    change_meaning the words for each. A mistake that was written down in several places is mended
    in all of them: `others` do not overlap with it, nor with one another. `like` is the name of a
    kernel that is right and has what is `new`.
    """

    start: int
    end: int
    new: str
    kind: str
    others: tuple[SourceChange, ...] = ()  # made along with it, at other places
    like: str = ""

    @property
    def pieces(self) -> tuple[SourceChange, ...]:
        """It and those that are made along with it."""
        return (self, *self.others)

    def is_part_of(self, other: SourceChange) -> bool:
        """Whether the other one does the same, and more at other places."""
        own, its = ({(it.start, it.end, it.new) for it in one.pieces} for one in (self, other))
        return own < its

    def applied(self, source: str) -> str:
        """The source with the change."""
        for piece in sorted(self.pieces, key=lambda item: (item.start, item.end), reverse=True):
            source = source[: piece.start] + piece.new + source[piece.end :]
        return source

    def switches_off(self, source: str) -> bool:
        """Whether it turns a name into 0 or 1, or a factor into 0: that may only keep a part of the
        kernel from running, so that something is right which is not what was meant.
        """
        old, new = source[self.start : self.end].strip(), self.new.strip()
        if _FLOAT.fullmatch(old):
            return _OFF.fullmatch(new) is not None and float(new.rstrip("f")) == 0.0
        return _OFF.fullmatch(new) is not None and old.isidentifier()

    def lines(self, source: str) -> set[int]:
        """All lines of the source that it changes."""
        return {
            line
            for piece in self.pieces
            for line in range(piece.line(source), source.count("\n", 0, piece.end) + 2)
        }

    def lines_before(self, source: str, lines: Iterable[int]) -> set[int]:
        """Where `lines` of the changed source stood in `source`."""
        shifts = [
            (piece.line(source), piece.new.count("\n") - source.count("\n", piece.start, piece.end))
            for piece in self.pieces
        ]
        found = set()
        for line in lines:
            before = line
            for begin, more in sorted(shifts):
                before -= more if before > begin else 0
            found.add(before)
        return found

    def line(self, source: str) -> int:
        """The line of the change, from 1."""
        return source.count("\n", 0, self.start) + 1
