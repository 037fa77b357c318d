"""Lessons of earlier runs for a new one, which stores them with its settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evoengine.errors import UsageError
from evoengine.generate.method_registry import WITHOUT_LESSONS
from evoengine.paths import RunPaths
from evoengine.records import Lesson
from evoengine.search.run_reader import RunReader

MOST = 20  # of each run: about as many as a prompt has words for


def lessons_for(
    generator: str, method: str, lessons_from: Sequence[Path], replay_from: str | None
) -> tuple[Lesson, ...]:
    """The lessons that a new run begins with: of the runs `lessons_from`; of a replay, those of the
    run it replays, because replies name them by number. Raises UsageError where no prompt would
    show them, StoreError.
    """
    if generator == "replay" and replay_from is not None and not lessons_from:
        with RunReader(RunPaths(Path(replay_from))) as reader:
            return reader.config.lessons
    if not lessons_from:
        return ()
    if generator != "openai":
        raise UsageError(
            f"--lessons-from: the generator {generator} sends no prompts that could show lessons;"
            " it needs --generator openai"
        )
    if method in WITHOUT_LESSONS:
        raise UsageError(
            f"--lessons-from: prompts of the method {method} show no lessons; choose another"
            " --method"
        )
    return carried_lessons(lessons_from)


def carried_lessons(runs: Sequence[Path]) -> tuple[Lesson, ...]:
    """The most useful lessons of stored runs, MOST of each: those with a sure effect that are not
    struck. They are numbered from 1, and the same words are carried once. Raises StoreError, and
    UsageError for a run without any.
    """
    found: dict[str, Lesson] = {}
    for run in runs:
        for lesson in _useful(run):
            found.setdefault(lesson.claim.casefold(), lesson)
    return tuple(
        lesson.model_copy(update={"number": number})
        for number, lesson in enumerate(found.values(), start=1)
    )


def _useful(run: Path) -> list[Lesson]:
    with RunReader(RunPaths(run)) as reader:
        name, task = reader.info.name, str(reader.info.task.get("name", ""))
        ranked = [lesson for lesson in reader.lessons().ranked if lesson.sign]
    if not ranked:
        raise UsageError(
            f"--lessons-from {name}: it has no lesson with a sure effect; `evoengine show {name}"
            " --lessons` lists what it has"
        )
    return [
        lesson.model_copy(
            update={"run": lesson.run or name, "task": lesson.task or task, "trials": ()}
        )
        for lesson in ranked[:MOST]
    ]
