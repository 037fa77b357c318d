"""Small versions of cases: allowed, between the task's own, and no hidden one."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.paths import find_task
from evoengine.task.load import load_task
from evoengine.task.schema import Task
from evoengine.task.small_cases import (
    KEPT,
    MOST_ELEMENTS,
    odd_case,
    small_case,
    smaller_versions,
    tiny_versions,
    versions,
)
from tests.scale_task import load_scale_task

TASKS = ("sdpa_h200", "matmul_fp16", "layernorm", "embedding_bag", "adamw")


@pytest.mark.parametrize("name", TASKS)
def test_small_cases_could_be_cases_of_the_task_and_are_none_that_is_hidden(name: str) -> None:
    task = load_task(find_task(name))
    found = small_cases(task)
    assert found
    for case, sizes in found.items():
        assert case not in task.all_cases and task.allows_case(sizes)
        assert task.scope(case) == sizes
        assert sizes not in task.hidden_cases.values()
        for dim, value in sizes.items():
            known = [int(one[dim]) for one in task.all_cases.values()]
            assert min(known) <= value <= max(known)


def test_large_dimensions_are_halved_in_whole_tiles_and_told_apart() -> None:
    task = load_task(find_task("matmul_fp16"))
    found = small_case(task, "large")
    assert found == ("large with M=128, N=256, K=512", {"M": 128, "N": 256, "K": 512})
    assert task.most_elements(found[1]) <= MOST_ELEMENTS


def test_an_odd_case_has_tails_where_the_tasks_cases_have_some() -> None:
    task = load_task(find_task("matmul_fp16"))
    named = odd_case(task, "large")
    assert named is not None and all(int(value) % 2 for value in named[1].values())


def test_one_that_is_looked_at_for_a_hidden_case_has_whole_vectors_and_no_whole_tiles() -> None:
    """A candidate that copies vectors where rows have whole ones is never at its edges else."""
    for name in ("matmul_fp16", "layernorm", "adamw", "sdpa_h200", "embedding_bag"):
        task = load_task(find_task(name))
        last = smaller_versions(task, next(iter(task.hidden_cases)))[-1]
        sizes = [
            value for value in task.scope(last).values() if type(value) is int and value > KEPT
        ]
        assert sizes and all(value % 8 == 0 and value % 16 for value in sizes if value % 64), name


def small_cases(task: Task) -> dict[str, dict[str, int | bool]]:
    """All of them by name."""
    return {name: sizes for case in task.cases for name, sizes in versions(task, case).items()}


def changed(task: Task, **cases: dict[str, int | bool]) -> Task:
    return task.model_copy(update={"cases": cases, "hidden_cases": {}})


def test_sizes_keep_the_divisor_that_all_cases_have_and_lie_between_them(tmp_path: Path) -> None:
    task = changed(load_scale_task(tmp_path), one={"N": 4096}, other={"N": 1 << 20})
    sizes = small_cases(task)
    assert [size["N"] for size in sizes.values()] == [131072, 86016, 4096, 12288]
    assert small_cases(changed(task, one={"N": 1 << 20})) == {}, "nothing smaller is known to work"


def test_tiny_cases_are_cut_alike_or_keep_one_dimension() -> None:
    task = load_task(find_task("matmul_fp16"))
    tiny = [sizes for name, sizes in versions(task, "square").items()][2:-1]
    assert tiny == [
        {"M": 81, "N": 43, "K": 41},
        {"M": 641, "N": 9, "K": 11},
        {"M": 9, "N": 643, "K": 11},
        {"M": 9, "N": 11, "K": 645},
    ]


def test_a_hidden_size_is_avoided(tmp_path: Path) -> None:
    task = load_scale_task(tmp_path)
    known = odd_case(task, "small")
    assert known is not None
    hidden = {"odd": {"N": known[1]["N"]}, "single": {"N": 1}}
    other = odd_case(task.model_copy(update={"hidden_cases": hidden}), "small")
    assert other is not None and other[1]["N"] == int(known[1]["N"]) + 2


def test_no_size_follows_from_the_least_one_of_a_hidden_case() -> None:
    """Else what is told of a small case would tell it."""
    task = load_task(find_task("layernorm"))
    found = [
        small_cases(task.model_copy(update={"hidden_cases": {"odd": {"N": rows, "C": 300}}}))
        for rows in range(51, 80, 2)
    ]
    assert all(sizes == found[0] for sizes in found) and found[0]


def test_of_a_shown_case_the_odd_version_is_looked_at_before_the_regular_one() -> None:
    task = load_task(find_task("matmul_fp16"))
    found = smaller_versions(task, "square")
    assert [task.scope(name)["M"] for name in found] == [81, 128]
    tiny = tiny_versions(task, "square")
    assert [task.scope(name)["M"] for name in tiny] == [81, 641, 9, 9]
    assert all(tiny_versions(task, case) == tiny for case in task.hidden_cases), "none is told"


def test_cases_that_become_the_same_are_one(tmp_path: Path) -> None:
    task = load_task(find_task("layernorm"))
    found = smaller_versions(task, "odd")
    assert all(smaller_versions(task, case) == found for case in task.hidden_cases)
    sizes = [tuple(small_cases(task)[name].values()) for name in found]
    assert len(sizes) == len(set(sizes)) <= 3
