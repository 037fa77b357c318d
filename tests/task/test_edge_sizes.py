"""Sizes that no case has, at the edge of tiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.task.edge_sizes import unchecked_edges
from evoengine.task.load import load_task
from evoengine.task.schema import Task
from tests.small import small_task

ROOT = Path(__file__).resolve().parent.parent.parent


def test_an_odd_row_alone_leaves_the_edge_of_vectors_unchecked() -> None:
    task = with_sizes(small_task(), 1024, 77)
    (line,) = unchecked_edges(task)
    assert "such as 132" in line and "16 bytes, 4 elements" in line


@pytest.mark.parametrize("size", [132, 1000, 36])
def test_a_row_of_whole_vectors_that_is_no_whole_number_of_tiles_checks_it(size: int) -> None:
    assert not unchecked_edges(with_sizes(small_task(), 1024, 77, size))


def test_nothing_is_said_of_rows_that_always_are_whole_tiles_or_short() -> None:
    assert not unchecked_edges(with_sizes(small_task(), 1024, 64))
    assert not unchecked_edges(with_sizes(small_task(), 33, 7))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tasks").glob("*.yaml")), ids=lambda path: path.stem
)
def test_a_packaged_task_checks_the_edges_of_its_rows(path: Path) -> None:
    assert not unchecked_edges(load_task(path))


def with_sizes(task: Task, *sizes: int) -> Task:
    """The task with one case for each size of all its dimensions."""
    cases = {f"of {size}": dict.fromkeys(task.dims, size) for size in sizes}
    return task.model_copy(update={"cases": cases, "hidden_cases": {}})
