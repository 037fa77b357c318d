"""The contract of method.Method, run over all methods."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from evoengine.errors import UsageError
from evoengine.generate.method import Method
from evoengine.generate.method_registry import MODULES, method_of
from evoengine.generate.operators import OperatorChoice
from evoengine.generate.prompt_templates import Prompts
from evoengine.protocols import Evaluated, Island, Request
from evoengine.records import Status
from tests.generate.row_sums_task import evaluated, request, with_place

every_method = pytest.mark.parametrize("name", MODULES)

SEEDS = (
    evaluated(0, "seed_a"),
    evaluated(1, "seed_b", tier="fp16"),
    evaluated(2, "seed_c", status=Status.compile_error, reason="SEED_FAILED"),
)
FOUND = (evaluated(7, "found_a"), evaluated(9, "found_b"), evaluated(8, "found_c", tier="fp16"))
FAILED = (
    evaluated(10, "failed_a", status=Status.wrong_result, reason="FOUND_WRONG"),
    evaluated(11, "failed_b"),
)
KNOWN = range(12)  # trials that are settled


def island(members: tuple[Evaluated, ...], without_gain: int = 0) -> Island:
    return Island(
        tier=members[0].outcome.tier,
        founder=members[0].outcome.trial,
        elites=tuple(with_place(item, place) for place, item in enumerate(members, start=1)),
        recent=(*members, FAILED[0]),
        trials_without_gain=without_gain,
    )


@lru_cache
def middle_of_a_run(task_path: Path) -> Request:
    """A request with elites that the run found."""
    return request(
        task_path,
        trial=12,
        elites=(FOUND[2], SEEDS[1], FOUND[0], FOUND[1], SEEDS[0]),
        recent=(*FOUND, *FAILED),
        seeds=SEEDS,
    )


def of_a_run(task_path: Path, seed: int, without_gain: int = 0) -> Request:
    """The same with islands; `seed` decides what is drawn."""
    islands = (
        island((FOUND[2],), without_gain),
        island((FOUND[0], FOUND[1]), without_gain),
        island((SEEDS[0],), without_gain),
    )
    return replace(middle_of_a_run(task_path), seed=seed, islands=islands)


def requests(task_path: Path) -> list[Request]:
    return [of_a_run(task_path, seed, without_gain=seed % 8) for seed in range(32)]


def parents_of(request: Request) -> set[int]:
    """The trials that may be parents."""
    pairs = [*request.elites, *(pair for island in request.islands for pair in island.elites)]
    return {evaluated.outcome.trial for _, evaluated in pairs}


def prompt(task_path: Path, method: Method, asked: Request) -> str:
    choice = method.choose(asked)
    return Prompts(task_path).render(choice, method.visible(asked, choice)).text


@every_method
def test_the_choice_and_what_is_shown_follow_from_the_request(name: str, task_path: Path) -> None:
    method = method_of(name)
    for first, second in zip(requests(task_path), requests(task_path), strict=True):
        choice = method.choose(first)
        assert choice == method.choose(second)
        shown, again = method.visible(first, choice), method.visible(second, choice)
        assert (shown.elites, shown.recent) == (again.elites, again.recent)


@every_method
def test_parents_are_elites_of_the_request_in_its_tier_first(name: str, task_path: Path) -> None:
    method = method_of(name)
    for asked in requests(task_path):
        choice = method.choose(asked)
        assert set(choice.trials) <= parents_of(asked)
        assert all(parent.outcome.tier == choice.tier for parent in choice.parents[:1])
        assert len(choice.parents) == {"first": 0, "mutate": 1, "crossover": 2}[choice.operator]
        assert len({parent.source for parent in choice.parents}) == len(choice.parents)


@every_method
def test_a_parent_is_never_one_that_the_method_does_not_show(name: str, task_path: Path) -> None:
    method = method_of(name)
    for asked in requests(task_path):
        choice = method.choose(asked)
        shown = method.visible(asked, choice)
        assert set(choice.trials) <= {item.outcome.trial for _, item in shown.elites}


@every_method
def test_what_is_shown_is_a_part_of_the_request(name: str, task_path: Path) -> None:
    method = method_of(name)
    for asked in requests(task_path):
        shown = method.visible(asked, method.choose(asked))
        of_islands = {item.outcome.trial for place in asked.islands for item in place.recent}
        recent = {item.outcome.trial for item in (*asked.recent, *asked.seeds)} | of_islands
        seeds = {item.outcome.trial for item in asked.seeds}
        assert {item.outcome.trial for _, item in shown.elites} <= parents_of(asked) | seeds
        assert {item.outcome.trial for item in shown.recent} <= recent
        assert (shown.trial, shown.seed, shown.task) == (asked.trial, asked.seed, asked.task)


@every_method
def test_without_any_elite_it_asks_for_a_first_sample(name: str, task_path: Path) -> None:
    method = method_of(name)
    bare = request(task_path, recent=FAILED, seeds=SEEDS[2:])
    for seed in range(10):
        asked = replace(bare, seed=seed)
        choice = method.choose(asked)
        assert (choice.operator, choice.parents) == ("first", ())
        assert "# What to do now" in prompt(task_path, method, asked)


@every_method
def test_asking_for_the_operator_that_would_be_chosen_changes_nothing(
    name: str, task_path: Path
) -> None:
    method = method_of(name)
    for asked in requests(task_path):
        assert method.choose(asked, method.choose(asked).operator) == method.choose(asked)


@every_method
def test_an_operator_is_given_or_refused_with_the_reason(name: str, task_path: Path) -> None:
    method, asked = method_of(name), of_a_run(task_path, 1)
    for operator in ("first", "mutate", "crossover"):
        try:
            assert method.choose(asked, operator).operator == operator
        except UsageError as refused:
            assert f"the method {name} has no {operator}" in str(refused)


@every_method
def test_a_tier_that_is_not_searched_is_never_asked_for(name: str, task_path: Path) -> None:
    method = method_of(name)
    for asked in requests(task_path):
        assert method.choose(replace(asked, tiers={"fp16": 1.0})).tier == "fp16"


@every_method
def test_the_shares_of_tiers_are_those_of_the_trials(name: str, task_path: Path) -> None:
    method = method_of(name)
    tiers = [
        method.choose(replace(of_a_run(task_path, seed), tiers={"fp16": 0.25, "fp32": 0.75})).tier
        for seed in range(400)
    ]
    assert 0.18 < tiers.count("fp16") / len(tiers) < 0.32


def shown_operators(task_path: Path, name: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for asked in requests(task_path):
        operator = method_of(name).choose(asked).operator
        found[operator] = found.get(operator, 0) + 1
    return found


def test_the_methods_use_the_operators_that_their_names_promise(task_path: Path) -> None:
    assert set(shown_operators(task_path, "free")) == {"mutate"}
    assert set(shown_operators(task_path, "insight")) == {"mutate"}
    assert set(shown_operators(task_path, "full")) == {"mutate", "crossover"}
    assert set(shown_operators(task_path, "best_of_n")) == {"first"}
    assert set(shown_operators(task_path, "islands")) == {"mutate", "crossover"}


def test_free_shows_the_best_kernel_and_insight_the_last_trials_too(task_path: Path) -> None:
    asked = replace(of_a_run(task_path, 1), tiers={"fp32": 1.0})
    free = prompt(task_path, method_of("free"), asked)
    insight = prompt(task_path, method_of("insight"), asked)
    full = prompt(task_path, method_of("full"), asked)
    assert "found_a" in free and "found_a" in insight and "found_a" in full
    assert "FOUND_WRONG" not in free
    assert "FOUND_WRONG" in insight and "FOUND_WRONG" in full
    assert "found_b" not in free and "found_b" not in insight
    assert "found_b" in full


def test_best_of_n_shows_nothing_of_the_run(task_path: Path) -> None:
    """Its prompt in the middle of a run is the one of a run that has its starting kernels only."""
    method = method_of("best_of_n")
    begun = request(
        task_path,
        trial=12,
        elites=(SEEDS[1], SEEDS[0]),
        recent=SEEDS,
        seeds=SEEDS,
    )
    asked = of_a_run(task_path, begun.seed)
    text = prompt(task_path, method, asked)
    choice = method.choose(asked)
    assert text == Prompts(task_path).render(choice, begun).text
    assert "seed_a" in text and "SEED_FAILED" in text
    for word in ("found_a", "found_b", "found_c", "failed_a", "failed_b", "FOUND_WRONG"):
        assert word not in text


def migrates(choice: OperatorChoice, home: set[int]) -> bool:
    return not set(choice.trials) <= home


def test_islands_exchange_parents_only_after_trials_without_gain(task_path: Path) -> None:
    method = method_of("islands")
    homes = [{7, 9}, {0}, {8}]
    for without_gain, expected in ((0, False), (3, False), (4, True), (9, True)):
        for seed in range(40):
            choice = method.choose(of_a_run(task_path, seed, without_gain=without_gain))
            home = next(trials for trials in homes if choice.trials[0] in trials)
            assert migrates(choice, home) == expected


def test_a_prompt_on_an_island_shows_nothing_of_the_others_but_a_migrant(task_path: Path) -> None:
    method = method_of("islands")
    names = {7: "found_a", 9: "found_b", 8: "found_c", 0: "seed_a"}
    homes = [{7, 9}, {0}, {8}]
    for asked in requests(task_path):
        choice = method.choose(asked)
        home = next(trials for trials in homes if choice.trials[0] in trials)
        text = prompt(task_path, method, asked)
        for trial in set(names) - home - set(choice.trials):
            assert names[trial] not in text


def test_an_unknown_method_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no method 'ful'; did you mean 'full'"):
        method_of("ful")
