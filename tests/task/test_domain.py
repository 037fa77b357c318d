"""Domains of dimensions: what cases keep to, and how they are said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evoengine.task import yaml_source
from evoengine.task.domain import Domain, allows, label
from evoengine.task.load import validated
from evoengine.task.schema import Task
from evoengine.task.yaml_source import YamlError
from tests.small import small_task
from tests.task.test_schema import TEXT

EXTENT = st.integers(1, 70)


def task_with(domain: str) -> Task:
    """The task of test_schema.py, whose N is 64 in a case and 7 in a hidden one."""
    text = TEXT.replace("dims: {N: int,", f"dims: {{N: {domain},")
    return validated(yaml_source.load(text, "t.yaml"))


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        ("{in: [64, 7]}", "64 or 7"),
        ("{in: [7, 8, 64]}", "7, 8 or 64"),
        ("{min: 7}", "an integer of at least 7"),
        ("{max: 64}", "an integer from 1 to 64"),
        ("{min: 7, max: 65536}", "an integer from 7 to 65536"),
        ("{multiple_of: 1}", "an integer"),
        ("int", "int"),
    ],
)
def test_a_domain_that_holds_every_case_is_kept_and_said(domain: str, words: str) -> None:
    task = task_with(domain)
    assert label(task.dims["N"]) == words
    assert label(task.dims["flip"]) == "bool" == task.dims["flip"]
    # as a run stores it
    assert Task.model_validate_json(task.model_dump_json()) == task


@pytest.mark.parametrize(
    ("domain", "says"),
    [
        ("{in: [64]}", "t.yaml:12:12: case odd: N must be 64, got 7"),
        ("{in: [7, 9]}", "t.yaml:10:14: case plain: N must be 7 or 9, got 64"),
        ("{multiple_of: 8}", "t.yaml:12:12: case odd: N must be a multiple of 8, got 7"),
        ("{min: 8}", "t.yaml:12:12: case odd: N must be an integer of at least 8, got 7"),
        ("{max: 63}", "t.yaml:10:14: case plain: N must be an integer from 1 to 63, got 64"),
        (
            "{multiple_of: 8, min: 8, max: 64}",
            "t.yaml:12:12: case odd: N must be a multiple of 8 from 8 to 64, got 7",
        ),
        ("{}", "t.yaml:3:11: dims.N: expected in, or some of min, max and multiple_of"),
        ("{in: []}", "t.yaml:3:16: dims.N.in: expected at least 1 in the list"),
        ("{in: [true, 64]}", "t.yaml:3:17: dims.N.in.0: expected a whole number, got True"),
        ("{in: [7, 7]}", r"t.yaml:3:16: dims.N: in: expected different ones, got \[7, 7\]"),
        ("{in: [64], min: 3}", "t.yaml:3:16: dims.N: expected either in, or min, max"),
        ("{min: 9, max: 12, multiple_of: 8}", "t.yaml:3:25: dims.N: no number is a multiple of 8"),
        ("{min: 9, max: 8}", "t.yaml:3:25: dims.N: no number is an integer from 9 to 8"),
        ("{inn: [4]}", "t.yaml:3:17: dims.N.inn: unknown key; did you mean 'in'[?] known: in, mul"),
        ("{values: [64]}", "t.yaml:3:20: dims.N.values: unknown key; known: in, multiple_of, min"),
        ("{min: 0}", "t.yaml:3:17: dims.N.min: expected a number > 0, got 0"),
        ("integer", "t.yaml:3:11: dims.N: expected 'int' or 'bool', got 'integer'"),
    ],
)
def test_a_case_outside_of_a_domain_and_a_wrong_domain_are_refused_with_their_place(
    domain: str, says: str
) -> None:
    with pytest.raises(YamlError, match=says):
        task_with(domain)


@given(EXTENT, st.none() | EXTENT, EXTENT, EXTENT)
def test_what_a_domain_allows_is_what_it_says(
    least: int, most: int | None, step: int, value: int
) -> None:
    try:
        domain = Domain.model_validate({"min": least, "max": most, "multiple_of": step})
    except ValidationError:
        assert most is not None and not [one for one in range(least, most + 1) if one % step == 0]
        return
    inside = least <= value <= (most or value) and value % step == 0
    assert allows(domain, value) is inside
    assert Domain.model_validate(domain.model_dump(mode="json")) == domain


@pytest.mark.parametrize("value", [True, 0, -8])
def test_no_domain_holds_a_flag_or_a_size_below_1(value: Any) -> None:
    for dimension in ("int", Domain.model_validate({"in": [1, 8]})):
        assert not allows(dimension, value)


def test_a_run_that_was_stored_without_domains_and_draws_still_parses() -> None:
    stored = small_task().model_dump(mode="json")
    for spec in stored["inputs"].values():
        del spec["draw"]
    assert Task.model_validate(stored) == small_task()
