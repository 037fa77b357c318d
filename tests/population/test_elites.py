"""The elites: who takes a place, who does not, and what never changes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evoengine.population.elites import Population, beats, resolution_of
from evoengine.population.status_counts import StatusCounts
from evoengine.records import Environment, Interval, Outcome, Status


def outcome(
    trial: int,
    value: float | None,
    half: float = 0.0,
    *,
    code: str = "",
    tier: str = "fp16",
    status: Status = Status.correct,
) -> Outcome:
    score = None if value is None else Interval(value=value, low=value - half, high=value + half)
    return Outcome(
        trial=trial,
        operator="tune",
        parents=(),
        source_digest=f"source{trial}",
        tunables={},
        label="kernel",
        status=status,
        reason="",
        tier=tier,
        code_digest=code or f"code{trial}",
        score=score,
        latency_us=None,
    )


def population_of(*outcomes: Outcome, places: int = 3) -> Population:
    population = Population(places)
    for each in outcomes:
        population.add(each)
    return population


def trials(population: Population, tier: str = "fp16") -> list[int]:
    return [elite.outcome.trial for elite in population.elites if elite.tier == tier]


def test_free_places_take_any_correct_candidate_in_the_order_of_scores() -> None:
    population = Population()
    assert [
        population.add(outcome(trial, value, half=9.0))
        for trial, value in enumerate([2.0, 1.0, 3.0])
    ] == [1, 1, 3]
    assert trials(population) == [1, 0, 2]
    assert [elite.place for elite in population.elites] == [1, 2, 3]


def test_a_full_tier_is_entered_only_beyond_the_noise_and_the_last_one_leaves() -> None:
    population = population_of(outcome(0, 1.0), outcome(1, 2.0), outcome(2, 3.0, half=0.3))
    within = outcome(3, 2.55, half=0.4)  # 0.45 better, noise hypot(0.3, 0.4) = 0.5
    beyond = outcome(4, 2.45, half=0.4)  # 0.55 better
    assert not population.would_take_place(within)
    assert population.add(within) is None
    assert population.would_take_place(beyond)
    assert population.add(beyond) == 3
    assert trials(population) == [0, 1, 4]


def test_a_newcomer_may_take_the_first_place() -> None:
    population = population_of(outcome(0, 2.0), outcome(1, 3.0), outcome(2, 4.0))
    assert population.add(outcome(3, 1.0)) == 1
    assert trials(population) == [3, 0, 1]


def test_equal_scores_are_in_the_order_of_their_trials() -> None:
    assert trials(population_of(outcome(5, 1.0), outcome(7, 1.0), outcome(6, 1.0))) == [5, 6, 7]


def test_an_equal_score_never_replaces_an_elite() -> None:
    population = population_of(outcome(0, 1.0), places=1)
    assert population.add(outcome(1, 1.0)) is None


def test_a_duplicate_of_an_elite_takes_no_second_place_however_fast() -> None:
    population = population_of(outcome(0, 2.0, code="same"))
    assert not population.would_take_place(outcome(1, 1.0, code="same"))
    assert population.add(outcome(1, 1.0, code="same")) is None
    assert trials(population) == [0]


def test_tiers_have_places_of_their_own() -> None:
    population = population_of(outcome(0, 2.0), outcome(1, 1.0, tier="fp8", code="code0"), places=1)
    assert [(elite.tier, elite.place, elite.outcome.trial) for elite in population.elites] == [
        ("fp16", 1, 0),
        ("fp8", 1, 1),
    ]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.correct])
def test_only_correct_ones_take_places(status: Status) -> None:
    population = Population()
    assert not population.would_take_place(outcome(0, 1.0, status=status))
    assert population.add(outcome(0, 1.0, status=status)) is None
    assert population.elites == ()


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_without_a_score_there_is_no_place(value: float | None) -> None:
    assert Population().add(outcome(0, value)) is None


def test_the_score_of_the_verification_counts() -> None:
    population = population_of(outcome(0, 2.0))
    assert population.add(outcome(1, 1.0), outcome(1, 2.5)) == 2
    assert [elite.outcome.score.value for elite in population.elites if elite.outcome.score] == [
        2.0,
        2.5,
    ]


def test_a_slower_verification_takes_the_place_away() -> None:
    population = population_of(outcome(0, 2.0), places=1)
    assert population.would_take_place(outcome(1, 1.0))
    assert population.add(outcome(1, 1.0), outcome(1, 2.5)) is None


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.correct])
def test_a_wrong_verification_makes_the_trial_unstable_and_a_fault_is_one(status: Status) -> None:
    population, first, second = Population(), outcome(0, 1.0), outcome(0, None, status=status)
    assert population.add(first, second) is None
    assert population.elites == ()
    final = Status.fault if status is Status.fault else Status.unstable
    assert first.after(second).status is final
    counts = StatusCounts()
    counts.add(first, second)
    counts.add(outcome(1, 1.0))
    assert counts.by_status == {Status.correct: 1, final: 1}
    assert list(counts.by_status) == [Status.correct, final]
    assert counts.settled == 2


def test_no_places_make_no_population() -> None:
    with pytest.raises(ValueError, match="places must be >= 1, got 0"):
        Population(0)


values = st.floats(0.1, 10.0)
halves = st.floats(0.0, 1.0)
scores = st.one_of(st.none(), st.tuples(values, halves))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Outcome, Outcome | None]]:
    """Settled trials in order, some judged twice."""
    history = []
    for trial in range(draw(st.integers(0, 25))):
        status = draw(
            st.sampled_from([Status.correct, Status.correct, Status.correct, Status.crash])
        )
        code, tier = f"code{draw(st.integers(0, 15))}", draw(st.sampled_from(["fp16", "fp8"]))
        first, second = (
            outcome(trial, *(draw(scores) or (None,)), code=code, tier=tier, status=status)
            for _ in range(2)
        )
        history.append((first, second if draw(st.booleans()) else None))
    return history


@given(histories(), st.integers(1, 4))
def test_places_are_always_few_sorted_distinct_and_correct(
    history: list[tuple[Outcome, Outcome | None]], places: int
) -> None:
    population = Population(places)
    for first, second in history:
        before = population.elites
        taken = population.add(first, second)
        if taken is None:
            assert population.elites == before
        else:
            assert [
                e.outcome for e in population.elites if (e.tier, e.place) == (first.tier, taken)
            ] == [first.after(second)]
        for tier in ("fp16", "fp8"):
            elites = [elite for elite in population.elites if elite.tier == tier]
            assert [elite.place for elite in elites] == list(range(1, len(elites) + 1))
            assert len(elites) <= places
            assert len({elite.outcome.code_digest for elite in elites}) == len(elites)
            keys = [
                (elite.outcome.score.value, elite.outcome.trial)
                for elite in elites
                if elite.outcome.score
            ]
            assert keys == sorted(keys)
            assert len(keys) == len(elites)
            assert all(elite.outcome.status is Status.correct for elite in elites)


@given(histories(), st.integers(1, 4))
def test_no_candidate_significantly_better_than_the_last_place_is_missing(
    history: list[tuple[Outcome, Outcome | None]], places: int
) -> None:
    population, outsiders = Population(places), []
    for first, second in history:
        population.add(first, second)
        counted = first.after(second)
        if counted.status is Status.correct and counted.score:
            outsiders.append(counted)
    last = {elite.tier: elite.outcome.score for elite in population.elites}
    codes = {(elite.tier, elite.outcome.code_digest) for elite in population.elites}
    for each in outsiders:
        score, worst = each.score, last[each.tier]
        assert score and worst
        if (each.tier, each.code_digest) in codes or _was_measured_again(each, outsiders):
            continue
        full = len([elite for elite in population.elites if elite.tier == each.tier]) == places
        assert full
        assert worst.value <= score.value + math.hypot(1.0, 1.0)  # no half-width is beyond 1


def _was_measured_again(each: Outcome, outsiders: list[Outcome]) -> bool:
    """A later or earlier measurement of the same candidate may stand for it."""
    return (
        sum(
            other.code_digest == each.code_digest and other.tier == each.tier for other in outsiders
        )
        > 1
    )


@given(histories())
def test_without_noise_the_elites_are_the_best_whatever_the_order(
    history: list[tuple[Outcome, Outcome | None]],
) -> None:
    exact = [
        first.model_copy(
            update={
                "score": Interval(
                    value=first.score.value, low=first.score.value, high=first.score.value
                )
            }
        )
        for first, _ in history
        if first.score
    ]
    distinct = list({(each.tier, each.code_digest): each for each in exact}.values())
    for order in (distinct, distinct[::-1]):
        population = population_of(*order)
        for tier in ("fp16", "fp8"):
            best = sorted(
                each.score.value
                for each in distinct
                if each.tier == tier and each.status is Status.correct and each.score
            )[:3]
            assert [
                elite.outcome.score.value
                for elite in population.elites
                if elite.tier == tier and elite.outcome.score
            ] == best


@given(histories())
def test_the_same_history_gives_the_same_elites(
    history: list[tuple[Outcome, Outcome | None]],
) -> None:
    one, two = Population(), Population()
    assert [one.add(*each) for each in history] == [two.add(*each) for each in history]
    assert one.elites == two.elites


@given(values, halves, values, halves)
def test_beats_is_asymmetric_and_needs_a_lower_value(
    a: float, half_a: float, b: float, half_b: float
) -> None:
    first, second = (
        Interval(value=value, low=value - half, high=value + half)
        for value, half in ((a, half_a), (b, half_b))
    )
    assert not (beats(first, second) and beats(second, first))
    assert not beats(first, first)
    if beats(first, second):
        assert a < b
    if first.high < second.low - 1e-9:
        assert beats(first, second)


def test_a_near_tie_of_modelled_times_takes_no_place() -> None:
    population = Population(places=1, resolution=0.01)
    population.add(outcome(0, 10.0))
    assert not population.would_take_place(outcome(1, 9.91))
    assert population.would_take_place(outcome(2, 9.89))


@pytest.mark.parametrize(("kind", "resolution"), [("emulator", 0.01), ("cuda", 0.0)])
def test_only_modelled_times_have_a_resolution(kind: str, resolution: float) -> None:
    found = Environment(
        device="d",
        kind=kind,
        arch="sm_89",
        sm_count=1,
        max_shared_bytes=1,
        l2_bytes=1,
        memory_bytes=1,
        versions={},
    )
    assert resolution_of(found) == resolution and resolution_of(None) == 0.0
