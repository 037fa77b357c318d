"""The table of the lessons of a run."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from evoengine.records import Lesson
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column

NOTE = (
    "effect: speed over that of the best parent; for and against: later trials that apply the"
    " lesson, with a sure effect of the same sign and of the other"
)


def lessons_table(lessons: Sequence[Lesson]) -> RenderableType:
    """Each lesson with its trial or earlier run, effect, device, and the trials for and against."""
    if not lessons:
        return Text("no lessons yet: no reply of a settled trial has one", style="dim")
    table = FittedTable(
        [
            Column("lesson"),
            Column("of"),
            Column("effect"),
            number_column("for"),
            number_column("against"),
            text_column("trials"),
            text_column("device"),
            text_column("claim", least=24),
        ],
        "lessons",
    )
    for lesson in lessons:
        table.add(
            f"L{lesson.number}" + (" struck" if lesson.struck else ""),
            f"run {lesson.run}, task {lesson.task}" if lesson.run else f"trial {lesson.trial}",
            lesson.effect_words,
            str(lesson.confirmed),
            str(lesson.contradicted),
            ", ".join(map(str, lesson.trials)),
            lesson.device,
            lesson.claim,
            style="dim" if lesson.struck else "",
        )
    return Group(table, Text(NOTE, style="dim"))
