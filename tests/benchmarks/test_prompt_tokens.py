"""The counts of tokens: the page holds what was counted, and prompts stay short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.prompt_tokens import ENVIRONMENTS, TASKS, all_prompts, parts, read_rows, rows
from benchmarks.table import table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "prompts.md"
BEFORE = read_rows(PAGE.with_name("prompts-before.json"))


def cells(text: str) -> list[list[str]]:
    """The rows of a Markdown table, without its rule."""
    lines = [line for line in text.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_page_has_the_rows_that_the_command_wrote() -> None:
    raw = json.loads(PAGE.with_name("prompts.json").read_text())["rows"]
    assert cells(PAGE.read_text()) == cells(table(raw))
    assert len(raw) == len(TASKS) * len(ENVIRONMENTS) * 4 + 1
    long = [row for row in raw if row["tokens / before"] > 2 / 3 and row["task"] != "all"]
    assert f"Of the 32 prompts {32 - len(long)} have at most two thirds" in PAGE.read_text()


def test_prompts_have_at_most_two_thirds_of_the_tokens_of_before_and_single_ones_not_many_more() -> (
    None
):
    prompts = all_prompts()
    *single, whole = rows(prompts, BEFORE)
    assert len(single) == len(BEFORE) == 32 and whole["task"] == "all"
    assert whole["tokens / before"] == pytest.approx(
        sum(prompt.tokens for prompt in prompts.values()) / sum(BEFORE.values())
    )
    assert whole["tokens / before"] < 2 / 3
    assert max(row["tokens / before"] for row in single) < 0.76
    for row, prompt in zip(parts(prompts), prompts.values(), strict=True):
        assert row["task part"] > 0 and len(prompt.parts) == len(row) - 3


def test_without_earlier_rows_nothing_is_compared() -> None:
    found = rows(dict(list(all_prompts().items())[:2]), {})
    assert [set(row) for row in found] == [{"task", "times", "operator", "tokens"}] * 2
