"""A change with the text that it removes, and its place."""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.words.change_place import ChangePlace

LONGEST = 90  # characters of a text that is shown


def quoted(text: str, most: int = LONGEST) -> str:
    """`text` on one line in quotes, cut to so many characters."""
    short = " ".join(text.split())
    return f'"{short}"' if len(short) <= most else f'"{short[: most - 3]}..."'


@dataclass(frozen=True)
class ChangedText:
    """A change with the text that it removes and its place."""

    change: SourceChange
    old: str
    place: ChangePlace
    whole: tuple[str, str] = ("", "")  # the value or statement around it, before and after

    @property
    def new(self) -> str:
        """What stands there after it."""
        return self.change.new.strip()

    @property
    def added(self) -> str:
        """What is added at the end or begin of the old text."""
        old, new = self.old.strip(), self.new
        if new.startswith(f"({old})"):
            return new[len(old) + 2 :].strip()
        if old and new.startswith(old):
            return new[len(old) :].strip()
        return new

    @property
    def removed(self) -> str:
        """What is removed at the begin or the end of the old text."""
        old, new = self.old.strip(), self.new
        if old.startswith(new):
            return old[len(new) :].strip()
        return old[: -len(new)].strip() if old.endswith(new) else old

    @property
    def where(self) -> str:
        """The place in words."""
        return self.place.words
