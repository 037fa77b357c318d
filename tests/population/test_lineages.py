from __future__ import annotations

import pytest

from evoengine.population.lineages import ISLANDS, PLACES, RECENT, Lineages
from evoengine.records import Interval, Outcome, Status


def outcome(
    trial: int,
    score: float | None,
    parents: tuple[int, ...] = (),
    tier: str = "fp32",
    operator: str = "mutate",
    source: str = "",
) -> Outcome:
    return Outcome(
        trial=trial,
        operator=operator,
        parents=parents,
        source_digest=source or str(trial),
        tunables={},
        label="",
        status=Status.wrong_result if score is None else Status.correct,
        reason="",
        tier=tier,
        code_digest=str(trial),
        score=None if score is None else Interval(value=score, low=score, high=score),
        latency_us=None,
    )


def islands(*outcomes: Outcome) -> dict[tuple[str, int], list[int]]:
    """(tier, founder) -> the trials of the island's best, best first."""
    lineages = Lineages()
    for item in outcomes:
        lineages.add(item)
    return {
        (island.tier, island.founder): [trial for _, trial, _ in island.best]
        for island in lineages.islands()
    }


def test_descendants_of_the_first_parent_are_one_island() -> None:
    found = islands(
        outcome(0, 1.0), outcome(1, 0.9), outcome(2, 0.8, (0, 1)), outcome(3, 0.7, (2,))
    )
    assert found == {("fp32", 0): [3, 2, 0], ("fp32", 1): [1]}


def test_a_child_in_another_tier_is_on_an_island_of_that_tier() -> None:
    found = islands(outcome(0, 1.0), outcome(1, 0.5, (0,), "fp16"), outcome(2, 0.4, (1,), "fp16"))
    assert found == {("fp16", 0): [2, 1], ("fp32", 0): [0]}


def test_other_values_of_a_source_stay_on_its_island_and_take_one_place() -> None:
    found = islands(outcome(0, 1.0), outcome(1, 0.9, source="0"), outcome(2, 0.95, (1,)))
    assert found == {("fp32", 0): [1, 2]}


def test_the_best_islands_of_a_tier_are_kept() -> None:
    found = islands(*(outcome(trial, 1.0 - trial / 10) for trial in range(ISLANDS + 2)))
    assert [founder for _, founder in found] == [ISLANDS + 1 - number for number in range(ISLANDS)]


def test_an_island_has_a_few_places() -> None:
    found = islands(outcome(0, 1.0), *(outcome(trial, 1.0 + trial, (0,)) for trial in range(1, 9)))
    assert found == {("fp32", 0): list(range(PLACES))}


def test_a_failed_trial_founds_nothing_and_is_no_parent() -> None:
    assert islands(outcome(0, None), outcome(1, 1.0), outcome(2, None, (1,))) == {("fp32", 1): [1]}


@pytest.mark.parametrize(
    ("later", "without_gain"),
    [
        ((), 0),
        ((outcome(1, None, (0,)),), 1),
        ((outcome(1, 1.1, (0,)), outcome(2, 1.2, (1,))), 2),
        ((outcome(1, 1.1, (0,)), outcome(2, 0.9, (0,))), 0),
        ((outcome(1, 1.1, (0,)), outcome(2, 1.1, (0,), operator="tune")), 1),
        ((outcome(1, 1.1, (0,)), outcome(2, 0.9, (0,), operator="tune")), 0),
        ((outcome(1, 5.0),), 0),
    ],
)
def test_trials_without_gain_are_those_of_the_island_since_its_best(
    later: tuple[Outcome, ...], without_gain: int
) -> None:
    lineages = Lineages()
    for item in (outcome(0, 1.0, operator="seed"), *later):
        lineages.add(item)
    island = next(item for item in lineages.islands() if item.founder == 0)
    assert island.trials_without_gain == without_gain


def test_the_last_trials_of_an_island_include_failures() -> None:
    lineages = Lineages()
    for item in (outcome(0, 1.0), *(outcome(trial, None, (0,)) for trial in range(1, 9))):
        lineages.add(item)
    assert list(lineages.islands()[0].recent) == list(range(9 - RECENT, 9))
