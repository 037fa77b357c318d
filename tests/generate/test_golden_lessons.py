"""What prompts say of lessons, whole, as a model reads it: golden/lessons.md.

python -m tests.generate.test_golden_lessons    # writes it anew; read the difference
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from evoengine import atomic_files
from evoengine.config import PromptSettings
from evoengine.generate.lesson_texts import MAX_WORDS, lesson_texts
from evoengine.generate.method_registry import MODULES, WITHOUT_LESSONS, method_of
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.prompt_templates import Prompts
from evoengine.protocols import Island
from evoengine.records import Interval, Lesson, Status
from tests.generate.row_sums_task import evaluated, request, write_task

GOLDEN = Path(__file__).parent / "golden" / "lessons.md"
FIRST, NEXT = "# Lessons with their effects", "\n# "


def lesson(number: int, claim: str, ratio: float | None = 1.041, **more: object) -> Lesson:
    found = Lesson(
        number=number,
        claim=claim,
        trial=number + 14,
        tier="fp32",
        status=Status.compile_error if ratio is None else Status.correct,
        effect=ratio and Interval(value=ratio, low=ratio - 0.013, high=ratio + 0.013),
        is_rough=False,
        sign=0 if ratio is None else 1 if ratio > 1 else -1,
        device="NVIDIA H200",
        is_modelled=False,
    )
    return found.model_copy(update=more)


LESSONS = (
    lesson(3, "keys in registers need no shared memory between the products", confirmed=1),
    lesson(4, "four stages take shared memory from blocks", 0.97, confirmed=2, contradicted=1),
    lesson(5, "a row a block leaves SMs idle\n# What to do now", 0.71, is_rough=True),
    lesson(6, "wgmma", None),
    lesson(1, "one barrier a tile", run="one", task="attention", confirmed=3),
    lesson(
        2,
        "16 bytes a thread",
        1.2,
        run="two",
        task="layernorm",
        device="NVIDIA L4",
        is_modelled=True,
    ),
)


def prompt_with(lessons: tuple[Lesson, ...], folder: Path) -> str:
    task = write_task(folder)
    parent = evaluated(1)
    asked = replace(request(task, elites=(parent,), seeds=(parent,)), lessons=lessons)
    choice = OperatorChoice("mutate", "fp32", (parent,))
    return Prompts(task, PromptSettings(tokens=9000)).render(choice, asked).text


def part_of(text: str) -> str:
    part = text[text.index(FIRST) :]
    return part[: part.index(NEXT)].strip() + "\n"


def test_lessons_are_in_a_prompt_with_number_effect_and_device(tmp_path: Path) -> None:
    text = prompt_with(LESSONS, tmp_path)
    assert part_of(text) == GOLDEN.read_text(encoding="utf-8")
    assert "add `Applies: L3`" in text


def test_a_prompt_without_lessons_asks_for_one_but_for_no_number(tmp_path: Path) -> None:
    text = prompt_with((), tmp_path)
    assert FIRST not in text and "End with `Lesson: <" in text and "Applies" not in text


def test_lessons_have_at_most_400_words_together_the_first_ones_first() -> None:
    many = tuple(lesson(number, "word " * 24 + str(number)) for number in range(1, 30))
    lines = [item.text for item in lesson_texts(many)]
    assert MAX_WORDS - 40 < sum(len(line.split()) for line in lines) <= MAX_WORDS
    assert [line.split()[0] for line in lines] == [f"L{n}" for n in range(1, len(lines) + 1)]


@pytest.mark.parametrize("name", MODULES)
def test_insight_full_and_islands_show_lessons_and_the_others_do_not(
    name: str, tmp_path: Path
) -> None:
    parent = evaluated(1)
    asked = request(write_task(tmp_path), elites=(parent,), seeds=(parent,))
    method = method_of(name)
    choice = OperatorChoice("mutate", "fp32", (parent,))
    if name == "islands":
        asked = replace(asked, islands=(Island("fp32", 1, asked.elites, (), 0),))
    seen = method.visible(replace(asked, lessons=LESSONS), choice)
    assert seen.lessons == (() if name in WITHOUT_LESSONS else LESSONS)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        atomic_files.write_text(GOLDEN, part_of(prompt_with(LESSONS, Path(made))))
