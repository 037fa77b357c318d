"""Successive halving between structures: everyone a few configurations, the best the most."""

from __future__ import annotations

from pathlib import Path
from random import Random

from evoengine.candidate.arch import limits_of
from evoengine.candidate.kernel_file import parse
from evoengine.generate.halving import FIRST, TURN_OF_BEST, next_kernel
from evoengine.generate.search_space import SearchSpace
from evoengine.generate.tunable_kernels import TunableKernel
from evoengine.task.load import load_task
from evoengine.task.schema import Task
from tests.generate.row_sums_task import ENVIRONMENT, kernel, write_task


def structure(task: Task, name: str, best: float, tier: str = "fp32") -> TunableKernel:
    """A source whose first configuration has the loss `best`."""
    space = SearchSpace(parse(kernel(name, tier)), task, limits_of(ENVIRONMENT))
    return TunableKernel(None, space, [((0, 0), best)], ())


def shares(kernels: list[TunableKernel], slots: int) -> list[int]:
    """How many configurations each of `kernels` has after so many tuning trials, none better than
    its first one.
    """
    rng = Random(0)  # noqa: S311 - must repeat
    for slot in range(slots):
        chosen = next_kernel(kernels, slot, rng)
        chosen.settled.append(((0, 0), chosen.best))
    return [item.tries for item in kernels]


def test_the_best_half_gets_as_many_again_and_the_best_quarter_twice_as_many(
    tmp_path: Path,
) -> None:
    task = load_task(write_task(tmp_path))
    kernels = [structure(task, f"k{number}", number / 10) for number in range(8)]
    found = shares(kernels, 3 * 8 + 4 * 4 + 8 * 2 + 40)
    assert found[1:] == [4 * FIRST, *[2 * FIRST] * 2, *[FIRST] * 4]
    assert found[0] > 4 * FIRST, "the best one has no limit"


def test_better_structures_get_more_whenever_the_budget_ends(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path))
    for slots in range(100):
        kernels = [structure(task, f"k{number}", number / 10) for number in range(6)]
        found = shares(kernels, slots)
        assert found == sorted(found, reverse=True)


def test_the_best_one_is_not_kept_waiting_by_structures_that_keep_coming(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path))
    best, slots = structure(task, "best", 0.0), 60
    kernels, rng = [best], Random(0)  # noqa: S311 - must repeat
    for slot in range(slots):
        kernels.append(structure(task, f"k{slot}", 1.0 + slot))
        chosen = next_kernel(kernels, slot, rng)
        chosen.settled.append(((0, 0), chosen.best))
    assert best.tries >= slots // TURN_OF_BEST


def test_a_structure_alone_in_its_tier_is_tuned_without_a_limit(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path))
    kernels = [structure(task, "a", 0.0), structure(task, "b", 5.0, "fp16")]
    found = shares(kernels, 60)
    assert min(found) > 3 * FIRST


def test_a_configuration_in_flight_counts_as_one_that_was_tried(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path))
    flying = structure(task, "a", 0.0)
    flying = TunableKernel(None, flying.space, flying.settled, ((0, 1), (1, 0), (1, 1)))
    waiting = structure(task, "b", 1.0)
    assert next_kernel([flying, waiting], 1, Random(0)) is waiting  # noqa: S311
