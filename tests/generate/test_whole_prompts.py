"""The prompts of packaged tasks are those in golden/whole/, to the letter."""

from __future__ import annotations

import pytest

from tests.generate.whole_prompts import FOLDER, whole_prompts

PROMPTS = whole_prompts()


@pytest.mark.parametrize("name", PROMPTS)
def test_a_prompt_is_the_golden_one(name: str) -> None:
    """After a change on purpose: python -m tests.generate.whole_prompts, and read the difference."""
    assert PROMPTS[name] == (FOLDER / name).read_text(encoding="utf-8")


def test_there_is_no_other_golden_prompt() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(PROMPTS)
    assert {name.split(".")[1] for name in PROMPTS} == {"first", "mutate", "crossover", "repair"}
