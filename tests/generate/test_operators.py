from __future__ import annotations

from pathlib import Path

import pytest

from evoengine.errors import UsageError
from evoengine.generate.operators import FIRST_SAMPLES, choose, choose_as
from tests.generate.row_sums_task import evaluated, request


def test_the_population_is_opened_by_first_samples(task_path: Path) -> None:
    elites = (evaluated(0), evaluated(1))
    seeds = (evaluated(0), evaluated(1))
    chosen = [
        choose(
            request(task_path, trial=2 + number, seed=number, elites=elites, seeds=seeds)
        ).operator
        for number in range(FIRST_SAMPLES + 20)
    ]
    assert set(chosen[:FIRST_SAMPLES]) == {"first"}
    assert set(chosen[FIRST_SAMPLES:]) == {"mutate", "crossover"}


def test_one_source_in_two_places_is_not_enough_for_parents(task_path: Path) -> None:
    twice = (evaluated(0, name="same"), evaluated(1, name="same", tunables={"THREADS": 256}))
    assert {choose(request(task_path, seed=seed, elites=twice)).operator for seed in range(20)} == {
        "first"
    }


def test_crossover_takes_two_different_sources(task_path: Path) -> None:
    elites = (evaluated(0, name="same"), evaluated(1, name="same"), evaluated(2, name="other"))
    choices = [choose(request(task_path, seed=seed, elites=elites)) for seed in range(60)]
    pairs = [choice.parents for choice in choices if choice.operator == "crossover"]
    assert pairs
    assert all(first.source != second.source for first, second in pairs)


def test_a_tier_with_one_elite_crosses_with_another_tier(task_path: Path) -> None:
    elites = (evaluated(0, tier="fp32"), evaluated(1, tier="fp16"))
    choices = [choose(request(task_path, seed=seed, elites=elites)) for seed in range(60)]
    crossed = [choice for choice in choices if choice.operator == "crossover"]
    assert {choice.tier for choice in crossed} == {"fp32", "fp16"}
    assert all(choice.parents[0].outcome.tier == choice.tier for choice in choices)


def test_better_places_are_drawn_more_often(task_path: Path) -> None:
    elites = (evaluated(0), evaluated(1), evaluated(2))
    drawn = [choose(request(task_path, seed=seed, elites=elites)).trials[0] for seed in range(300)]
    assert drawn.count(0) > drawn.count(1) > drawn.count(2) > 0


def test_first_samples_aim_at_tiers_that_hold_nothing(task_path: Path) -> None:
    asked = [
        request(task_path, trial=1, seed=seed, elites=(evaluated(0, tier="fp32"),))
        for seed in range(20)
    ]
    assert {choose(item).tier for item in asked} == {"fp16"}


def test_the_same_request_chooses_the_same(task_path: Path) -> None:
    elites = (evaluated(0), evaluated(1))
    assert all(
        choose(request(task_path, seed=seed, elites=elites))
        == choose(request(task_path, seed=seed, elites=elites))
        for seed in range(20)
    )


def test_asking_for_the_operator_that_would_be_chosen_changes_nothing(task_path: Path) -> None:
    elites = (evaluated(0), evaluated(1), evaluated(2))
    for seed in range(60):
        asked = request(task_path, seed=seed, elites=elites)
        assert choose_as(choose(asked).operator, asked) == choose(asked)


def test_an_operator_without_parents_is_refused(task_path: Path) -> None:
    with pytest.raises(UsageError, match="mutate needs 1 correct kernel, there are none"):
        choose_as("mutate", request(task_path, elites=()))
    with pytest.raises(
        UsageError, match="crossover needs 2 correct kernels with different sources, there is 1"
    ):
        choose_as("crossover", request(task_path, elites=(evaluated(0),)))
