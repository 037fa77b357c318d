"""What the rest of the source says for a change: a name that is used nowhere, words that follow one
another elsewhere too.

Code repeats itself: where a change gives a sequence that the kernel has in another place, it is
more likely what was meant. And a variable that nothing reads was meant to be read.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache

from evoengine.evaluate.repair.kernel_code import KernelCode
from evoengine.evaluate.repair.source_change import SourceChange
from evoengine.evaluate.repair.source_tokens import words

_NAME = re.compile(r"[A-Za-z_]\w*")
_RARE = 2  # uses of a variable
_NEIGHBOURS = 2  # words on each side that are looked at


@dataclass(frozen=True)
class Evidence:
    """What speaks for a change."""

    uses_unused: bool = False  # it reads a variable that is read nowhere
    is_familiar: bool = False  # each three words in a row that it makes are elsewhere, too
    leaves_unread: bool = False  # nothing reads a variable any more that it takes away
    reads_idle: bool = False  # it reads the variable of a loop whose body reads it nowhere
    is_rare: bool = False  # a variable that it adds is read in two places at most


class ChangeEvidence:
    """The evidence for the changes of one kernel."""

    def __init__(self, code: KernelCode) -> None:
        self._code = code
        self._befores: dict[int, list[str]] = {}
        self._behinds: dict[int, list[str]] = {}

    def of(self, change: SourceChange) -> Evidence:
        """What speaks for a change of the device code; nothing of one of the plan. Of several
        changes that are made as one it is that of the first.
        """
        if change.start < self._code.offset:
            return Evidence()
        old = self._code.source[change.start : change.end]
        added = set(_names(change.new)) - set(_names(old))
        unused = bool(added & self._unused)
        is_rare = any(self._uses.get(name, _RARE + 1) <= _RARE for name in added)
        return Evidence(
            unused,
            self._is_familiar(change),
            self._leaves_unread(change),
            self._reads_idle(change, added),
            is_rare,
        )

    def _reads_idle(self, change: SourceChange, added: set[str]) -> bool:
        starts, place = self._code.tokens.starts, change.start - self._code.offset
        return any(
            item.name in added and starts[item.position] < place <= starts[item.last]
            for item in self._code.idle_loops
        )

    def _leaves_unread(self, change: SourceChange) -> bool:
        removed: Counter[str] = Counter()
        for piece in change.pieces:
            removed.update(_names(self._code.source[piece.start : piece.end]))
        for piece in change.pieces if removed else ():
            removed.subtract(_names(piece.new))
        return any(count >= self._uses.get(name, count + 1) for name, count in removed.items())

    @cached_property
    def _uses(self) -> dict[str, int]:
        """How often each variable is used."""
        return Counter(self._code.tokens.text(first) for first, _, _ in self._code.atoms())

    @cached_property
    def _unused(self) -> frozenset[str]:
        """The variables that are declared and read nowhere."""
        return frozenset(item.name for item in self._code.unread)

    def _left(self, place: int) -> list[str]:
        """The words before a place of the code."""
        if place not in self._befores:
            found = self._code.tokens.before(place, _NEIGHBOURS)
            self._befores[place] = [token.text for token in found]
        return self._befores[place]

    def _right(self, place: int) -> list[str]:
        """The words behind a place of the code."""
        if place not in self._behinds:
            found = self._code.tokens.behind(place, _NEIGHBOURS)
            self._behinds[place] = [token.text for token in found]
        return self._behinds[place]

    @cached_property
    def _sequences(self) -> frozenset[tuple[str, ...]]:
        """Each three words in a row of the device code."""
        words = [token.text for token in self._code.tokens.tokens]
        return frozenset(zip(words, words[1:], words[2:], strict=False))

    def _is_familiar(self, change: SourceChange) -> bool:
        code = self._code
        before, after = change.start - code.offset, change.end - code.offset
        left, right = self._left(before), self._right(after)
        made = [*left, *_words(change.new), *right]
        threes = zip(made, made[1:], made[2:], strict=False)
        return len(made) > 2 and all(item in self._sequences for item in threes)


@lru_cache(maxsize=1 << 14)
def _names(text: str) -> tuple[str, ...]:
    return tuple(_NAME.findall(text))


@lru_cache(maxsize=1 << 14)
def _words(text: str) -> tuple[str, ...]:
    return words(text)
