"""The lines of a reply about lessons: read in every form, kept in the stored insight."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.generate import lesson_lines, parsed_reply, reply_text
from evoengine.generate.lesson_lines import MAX_CHARACTERS, MAX_WORDS, LessonLines
from evoengine.records import Reply
from tests.generate.row_sums_task import kernel, request, write_task

CLAIM = "three stages of cp.async hide the latency"


@pytest.mark.parametrize(
    "line",
    [
        f"Lesson: {CLAIM}",
        f"- Lesson: {CLAIM}",
        f"* **Lesson:** {CLAIM}",
        f"**Lesson**: {CLAIM}",
        f"4. lesson: *{CLAIM}*",
        f"### Lesson: {CLAIM}",
        f"Lesson: <{CLAIM}>",
    ],
)
def test_a_claim_is_read_in_the_forms_that_models_write(line: str) -> None:
    assert lesson_lines.read(f"some text\n{line}\nApplies: L3 and L12") == LessonLines(
        CLAIM, (3, 12)
    )
    assert lesson_lines.is_lesson_line(line)


@pytest.mark.parametrize("line", ["Lessons learned: none", "a Lesson: x", "It applies: L3", ""])
def test_other_lines_are_no_lessons(line: str) -> None:
    assert lesson_lines.read(line) == LessonLines()


def test_a_claim_has_at_most_25_words_on_one_line_and_the_last_one_counts() -> None:
    found = lesson_lines.read(f"Lesson: {'w ' * 40}\nLesson: {'x' * 900} y\nLesson:\n")
    assert found.claim == "x" * MAX_CHARACTERS
    assert len(lesson_lines.read(f"Lesson: {'w ' * 40}").claim.split()) == MAX_WORDS


def test_lines_are_read_again_from_what_is_stored() -> None:
    for said in (LessonLines(), LessonLines(CLAIM), LessonLines(CLAIM, (1, 2))):
        assert lesson_lines.read("\n".join(("a thought", *said.lines))) == said


@pytest.mark.parametrize("line", [" " * 200_000, "Lesson" + " " * 200_000, "*" * 200_000 + "x"])
def test_a_long_line_is_read_in_linear_time(line: str) -> None:
    assert lesson_lines.read(line * 5) == LessonLines()


def reply(thoughts: str) -> str:
    return f"```cuda\n{kernel()}```\n\n## Thoughts\n\n{thoughts}"


def test_a_proposal_keeps_thoughts_and_lesson_apart_in_its_insight(tmp_path: Path) -> None:
    text = reply(f"- less traffic\n- more blocks next\nLesson: {CLAIM}\nApplies: L2\n")
    reading = reply_text.read(text)
    assert reading.thoughts == ("less traffic", "more blocks next")
    parsed = parsed_reply.read(
        Reply(model="m", prompt="p", text=text), request(write_task(tmp_path)), lambda _: None
    )
    assert reading.lessons == LessonLines(CLAIM, (2,))
    assert parsed.proposal("mutate", (1,)).insight.split("\n") == [
        "less traffic",
        "more blocks next",
        f"Lesson: {CLAIM}",
        "Applies: L2",
    ]


def test_a_reply_without_a_lesson_is_as_good() -> None:
    assert reply_text.read(reply("- less traffic")).lessons == LessonLines()
    assert reply_text.read(reply("- less traffic")).problem == ""
