from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evoengine.errors import UsageError
from evoengine.generate.methods.full import METHOD
from evoengine.generate.operators import FIRST_SAMPLES, PLATEAU
from evoengine.protocols import Evaluated
from evoengine.records import Interval
from tests.generate.row_sums_task import evaluated, request

choose = METHOD.choose


def test_the_population_is_opened_by_first_samples(task_path: Path) -> None:
    held = (evaluated(0), evaluated(1))
    begun = replace(request(task_path, elites=held, seeds=held), tiers={"fp32": 1.0})
    chosen = [
        choose(replace(begun, trial=2 + number, seed=number, asking=number)).operator
        for number in range(FIRST_SAMPLES + 20)
    ]
    assert set(chosen[:FIRST_SAMPLES]) == {"first"}
    assert set(chosen[FIRST_SAMPLES:]) == {"mutate", "crossover"}


def test_where_all_places_have_one_source_it_is_mutated_and_first_samples_bring_others(
    task_path: Path,
) -> None:
    places = [evaluated(n, name="same", tunables={"THREADS": 64 << n}) for n in range(3)]
    held = replace(request(task_path, elites=tuple(places)), tiers={"fp32": 1.0})
    chosen = [choose(replace(held, seed=seed)).operator for seed in range(200)]
    assert set(chosen) == {"mutate", "first"}
    assert 60 < chosen.count("mutate") < 140
    assert choose(held, "mutate").operator == "mutate"
    with pytest.raises(UsageError, match="crossover needs 2 correct kernels with different sou"):
        choose(held, "crossover")


def test_on_a_plateau_half_of_the_trials_are_first_samples_until_there_is_a_gain(
    task_path: Path,
) -> None:
    elites = (evaluated(0), evaluated(1))
    held = replace(request(task_path, elites=elites), tiers={"fp32": 1.0})
    for trials, expected in ((PLATEAU - 1, range(1)), (PLATEAU, range(70, 131)), (0, range(1))):
        stuck = replace(held, trials_without_gain=trials)
        chosen = [choose(replace(stuck, seed=seed, trial=seed)) for seed in range(200)]
        found = [choice for choice in chosen if choice.operator == "first"]
        assert len(found) in expected
        assert all(choice.direction is not None and not choice.parents for choice in found)


def test_asking_for_an_operator_on_a_plateau_changes_nothing_else(task_path: Path) -> None:
    elites = (evaluated(0), evaluated(1), evaluated(2))
    for seed in range(60):
        asked = replace(request(task_path, seed=seed, elites=elites), trials_without_gain=PLATEAU)
        assert choose(asked, choose(asked).operator) == choose(asked)


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


def slow(trial: int, times: float) -> Evaluated:
    """A kernel that takes `times` as long as the others."""
    item = evaluated(trial)
    score = Interval(value=0.5 * times, low=0.5 * times, high=0.5 * times)
    return replace(item, outcome=item.outcome.model_copy(update={"score": score}))


@pytest.mark.parametrize(("times", "crossed"), [(1.9, True), (2.1, False)])
def test_a_weak_kernel_is_crossed_with_none_unless_it_is_asked_for(
    task_path: Path, times: float, crossed: bool
) -> None:
    elites = (evaluated(0), slow(1, times))
    begun = replace(request(task_path, elites=elites), tiers={"fp32": 1.0})
    choices = [choose(replace(begun, seed=seed)) for seed in range(60)]
    assert {choice.operator for choice in choices} == {
        "mutate",
        *(["crossover"] if crossed else []),
    }
    asked = choose(request(task_path, elites=elites), "crossover")
    assert set(asked.trials) == {0, 1}


def test_a_partner_is_weak_only_where_there_is_no_other(task_path: Path) -> None:
    elites = (evaluated(0), slow(1, 5.0), evaluated(2))
    choices = [choose(request(task_path, seed=seed, elites=elites)) for seed in range(120)]
    pairs = {frozenset(choice.trials) for choice in choices if choice.operator == "crossover"}
    assert pairs == {frozenset({0, 2})}


def test_better_places_are_drawn_more_often(task_path: Path) -> None:
    elites = (evaluated(0), evaluated(1), evaluated(2))
    asked = replace(request(task_path, elites=elites), tiers={"fp32": 1.0})
    drawn = [choose(replace(asked, seed=seed)).trials[0] for seed in range(300)]
    assert drawn.count(0) > drawn.count(1) > drawn.count(2) > 0


def test_a_tier_without_a_starting_kernel_has_one_first_sample_in_eight(task_path: Path) -> None:
    seeds = (evaluated(0, tier="fp32"),)
    asked = request(task_path, trial=1, seeds=seeds)
    tiers = [choose(replace(asked, seed=seed)).tier for seed in range(400)]
    share = tiers.count("fp16") / len(tiers)
    assert 1 / 16 < share < 3 / 16


def test_a_tier_without_an_elite_gets_first_samples_after_the_opening_too(task_path: Path) -> None:
    elites = (evaluated(0), evaluated(1))
    chosen = [choose(request(task_path, seed=seed, elites=elites)) for seed in range(40)]
    assert {choice.operator for choice in chosen if choice.tier == "fp16"} == {"first"}
    assert {choice.operator for choice in chosen if choice.tier == "fp32"} == {
        "mutate",
        "crossover",
    }


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
        assert choose(asked, choose(asked).operator) == choose(asked)


def test_an_operator_without_parents_is_refused(task_path: Path) -> None:
    with pytest.raises(UsageError, match="mutate needs 1 correct kernel, there are none"):
        choose(request(task_path, elites=()), "mutate")
    with pytest.raises(
        UsageError, match="crossover needs 2 correct kernels with different sources, there is 1"
    ):
        choose(request(task_path, elites=(evaluated(0),)), "crossover")
