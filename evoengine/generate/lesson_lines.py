"""The lines of a reply that say what it teaches: `Lesson: ...` and `Applies: L3, L5`.

Both stay in the insight that is stored with a proposal, from which they are read again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_WORDS = 25  # of a claim
MAX_CHARACTERS = 250  # of a claim: its words may be long
MAX_APPLIED = 5  # lessons that one kernel can be said to apply

# Possessive (*+): a line of 100,000 blanks must not be backtracked over.
_BEFORE = r"^[\s>*+•_#-]*+(?:\d{1,3}[.)]\s*+)?+[*_]*+"
_LESSON = re.compile(_BEFORE + r"lesson[\s*_]*+:(.*)$", re.IGNORECASE)
_APPLIES = re.compile(_BEFORE + r"applies[\s*_]*+:(.*)$", re.IGNORECASE)
_NUMBER = re.compile(r"\bL(\d{1,6})\b")


@dataclass(frozen=True)
class LessonLines:
    """The claim of a reply, "" where it has none, and the numbers of the lessons it applies."""

    claim: str = ""
    applied: tuple[int, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines that `read` reads as this again."""
        applied = ", ".join(f"L{number}" for number in self.applied)
        return (
            *([f"Lesson: {self.claim}"] if self.claim else []),
            *([f"Applies: {applied}"] if applied else []),
        )


def is_lesson_line(line: str) -> bool:
    """Whether `line` is one of the two."""
    return bool(_LESSON.match(line) or _APPLIES.match(line))


def read(text: str) -> LessonLines:
    """The lesson lines of `text`; of several of a kind the last, in time linear in its length."""
    claim, applied = "", tuple[int, ...]()
    for line in text.split("\n"):
        if match := _LESSON.match(line):
            claim = _claim(match[1]) or claim
        elif match := _APPLIES.match(line):
            found = dict.fromkeys(int(number) for number in _NUMBER.findall(match[1]))
            applied = tuple(found)[:MAX_APPLIED]
    return LessonLines(claim, applied)


def _claim(text: str) -> str:
    """At most MAX_WORDS words, without the emphasis and the placeholder marks around them."""
    words = text.strip("*_<> \t").split()[:MAX_WORDS]
    return " ".join(words)[:MAX_CHARACTERS].strip("*_<> ")
