"""Lessons as prompts show them: one line each, with number, effect and device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evoengine.records import Lesson

MAX_WORDS = 400  # of all lessons in a prompt together


@dataclass(frozen=True)
class LessonText:
    """The line of a lesson, and whether it is of an earlier run."""

    text: str
    is_carried: bool


def lesson_texts(lessons: Iterable[Lesson]) -> Iterator[LessonText]:
    """The lines of `lessons`, which are ranked, as far as MAX_WORDS go; a shorter one may still fit
    after one that does not.
    """
    left = MAX_WORDS
    for lesson in lessons:
        line = lesson_text(lesson)
        words = len(line.split())
        if words <= left:
            left -= words
            yield LessonText(line, bool(lesson.run))


def lesson_text(lesson: Lesson) -> str:
    """E.g. `L3 (trial 17, +4.1 % [2.8, 5.4] on NVIDIA H200, confirmed once): one barrier a tile`;
    of another run with its task. What confirmed that may have been on this run's device.
    """
    facts = [
        f"task {lesson.task}" if lesson.run else f"trial {lesson.trial}",
        f"{lesson.effect_words} on {lesson.device}",
        *([f"confirmed {_times(lesson.confirmed)}"] if lesson.confirmed else []),
        *([f"contradicted {_times(lesson.contradicted)}"] if lesson.contradicted else []),
    ]
    return f"L{lesson.number} ({', '.join(facts)}): {lesson.claim}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
