"""Places by race: the rule by examples, and what holds whatever the races find."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evoengine.population.elites import Population, has_races
from evoengine.population.places_by_race import ATTEMPTS, RankedHolder, Standing, standing
from evoengine.protocols import PastRace
from evoengine.records import Environment, Interval, Outcome, RaceResult, Status

WON, LOST, VOID = RaceResult.won, RaceResult.lost, RaceResult.void
SCORE = Interval(value=1.0, low=0.9, high=1.1)
PLACES = 3


def holders(*trials: int, score: Interval = SCORE) -> list[RankedHolder]:
    """From the first place on; equal scores, so that races alone decide."""
    return [RankedHolder(trial, score) for trial in trials]


def races(*found: tuple[int, RaceResult]) -> list[PastRace]:
    return [PastRace(holder, result) for holder, result in found]


@pytest.mark.parametrize(("past", "found"), [
    ([], Standing(None, rival=10)),
    ([(10, WON)], Standing(0, None)),
    ([(10, LOST)], Standing(None, rival=11)),
    ([(10, LOST), (11, WON)], Standing(1, None)),
    ([(10, LOST), (11, LOST)], Standing(None, rival=12)),
    ([(10, LOST), (11, LOST), (12, WON)], Standing(2, None)),
    ([(10, LOST), (11, LOST), (12, LOST)], Standing(None, None)),
])  # fmt: skip
def test_it_races_downwards_until_it_wins_and_takes_the_place_of_the_holder_that_it_beat(
    past: list[tuple[int, RaceResult]], found: Standing
) -> None:
    assert standing(holders(10, 11, 12), PLACES, SCORE, races(*past)) == found


@pytest.mark.parametrize(("past", "found"), [
    ([], Standing(None, rival=10)),
    ([(10, WON)], Standing(0, None)),
    ([(10, LOST), (11, WON)], Standing(1, None)),
    ([(10, LOST), (11, LOST)], Standing(2, None)),
])  # fmt: skip
def test_one_that_beats_nobody_takes_a_free_place(
    past: list[tuple[int, RaceResult]], found: Standing
) -> None:
    assert standing(holders(10, 11), PLACES, SCORE, races(*past)) == found


def test_the_first_of_a_tier_races_nobody() -> None:
    assert standing([], PLACES, SCORE, []) == Standing(0, None)


@pytest.mark.parametrize("voids", range(ATTEMPTS + 1))
def test_a_void_race_is_run_again_and_three_of_them_are_not_won(voids: int) -> None:
    past = [(10, LOST), *[(11, VOID)] * voids]
    rival = 11 if voids < ATTEMPTS else 12
    assert standing(holders(10, 11, 12), PLACES, SCORE, races(*past)) == Standing(None, rival)


def test_a_race_that_is_won_after_void_ones_is_won() -> None:
    past = races((10, VOID), (10, VOID), (10, WON))
    assert standing(holders(10, 11, 12), PLACES, SCORE, past) == Standing(0, None)


def test_a_holder_that_is_clearly_faster_is_not_raced() -> None:
    fast, near = Interval(value=0.5, low=0.4, high=0.6), Interval(value=0.8, low=0.7, high=0.9)
    held = [RankedHolder(10, fast), RankedHolder(11, near), RankedHolder(12, SCORE)]
    assert standing(held, PLACES, SCORE, []) == Standing(None, rival=11), "0.9 is not above"
    assert standing(held, PLACES, SCORE, races((11, WON))) == Standing(1, None)
    slow = Interval(value=2.0, low=1.5, high=2.5)
    assert standing(held, PLACES, slow, []) == Standing(None, None)
    assert standing(held[:2], PLACES, slow, []) == Standing(2, None), "a free place is taken"


def test_races_need_not_be_transitive() -> None:
    """11 did not beat 10, nor 12 beat 11; whether the newcomer beats 12 does not matter once it has
    beaten 11, and nobody is raced again.
    """
    past = races((10, LOST), (11, WON))
    assert standing(holders(10, 11, 12), PLACES, SCORE, past) == Standing(1, None)


# ---------------------------------------------------------------- in a population


def outcome(trial: int, value: float = 1.0, half: float = 0.1, code: str = "") -> Outcome:
    return Outcome(
        trial=trial,
        operator="tune",
        parents=(),
        source_digest=f"source{trial}",
        tunables={},
        label="kernel",
        status=Status.correct,
        reason="",
        tier="fp16",
        code_digest=code or f"code{trial}",
        score=Interval(value=value, low=value - half, high=value + half),
        latency_us=None,
    )


Ask = Callable[[int, int], RaceResult]  # of a newcomer and a holder


def settle(population: Population, newcomer: Outcome, ask: Ask) -> list[PastRace]:
    """Runs the races that the population asks for, and adds the newcomer with them."""
    past = list[PastRace]()
    while (holder := population.rival_of(newcomer, past)) is not None:
        past.append(PastRace(holder, ask(newcomer.trial, holder)))
    population.add(newcomer, None, past)
    return past


def trials(population: Population) -> list[int]:
    return [elite.outcome.trial for elite in population.elites]


def test_a_newcomer_that_wins_every_race_takes_the_first_place_and_the_last_one_leaves() -> None:
    population = Population(by_races=True)
    for trial in range(5):
        settle(population, outcome(trial), lambda _newcomer, _holder: WON)
    assert trials(population) == [4, 3, 2]


def test_a_newcomer_that_wins_no_race_takes_only_a_free_place() -> None:
    population = Population(by_races=True)
    for trial in range(5):
        settle(population, outcome(trial), lambda _newcomer, _holder: LOST)
    assert trials(population) == [0, 1, 2]


def test_scores_decide_only_which_races_are_run() -> None:
    """A newcomer with the worst score stands first if it wins."""
    population = Population(by_races=True)
    for trial, value in enumerate([1.0, 1.01, 1.02, 1.05]):
        settle(
            population, outcome(trial, value), lambda newcomer, _: WON if newcomer == 3 else LOST
        )
    assert trials(population) == [3, 0, 1]


def test_a_copy_of_an_elite_and_a_wrong_one_race_nobody() -> None:
    population = Population(by_races=True)
    settle(population, outcome(0, code="same"), lambda *_: WON)
    wrong = outcome(2).model_copy(update={"status": Status.unstable, "score": None})
    for newcomer in (outcome(1, 0.5, code="same"), wrong):
        assert population.rival_of(newcomer, []) is None
        assert population.add(newcomer) is None
    assert trials(population) == [0]


def test_a_candidate_is_promising_if_it_may_take_a_place_whatever_the_noise() -> None:
    population = Population(by_races=True)
    for trial, value in enumerate([1.0, 1.1, 1.2]):
        settle(population, outcome(trial, value), lambda *_: LOST)
    assert population.would_take_place(outcome(3, 1.195, half=0.5))
    assert not population.would_take_place(outcome(3, 1.196, half=0.5)), (
        "no race is won by so little"
    )
    assert population.bar("fp16") == 1.2 and population.bar("fp32") is None


def test_a_candidate_is_not_likely_to_take_a_place_that_earlier_ones_promise_to_take() -> None:
    population = Population(by_races=True)
    for trial, value in enumerate([1.0, 1.1]):
        settle(population, outcome(trial, value), lambda *_: LOST)
    earlier = [outcome(2, 1.05), outcome(3, 2.0).model_copy(update={"tier": "fp32"})]
    assert population.likely_takes_place(outcome(4, 1.08), [])
    assert population.likely_takes_place(outcome(4, 1.2), []), "a place is free"
    assert population.likely_takes_place(outcome(4, 1.08), earlier)
    assert not population.likely_takes_place(outcome(4, 1.2), earlier)
    settle(population, outcome(2, 1.2), lambda *_: LOST)
    assert population.likely_takes_place(outcome(4, 1.08), [outcome(3, 1.15)])
    both = [outcome(3, 1.02), outcome(5, 1.03)]
    assert not population.likely_takes_place(outcome(4, 1.08), both)
    wrong = outcome(3, 1.0).model_copy(update={"status": Status.wrong_result, "score": None})
    assert population.likely_takes_place(outcome(4, 1.08), [wrong])
    assert not population.likely_takes_place(wrong, [])


@pytest.mark.parametrize(("kind", "version", "expected"), [
    ("cuda", 3, True), ("cuda", 2, False), ("cuda", 1, False), ("emulator", 3, False),
    ("scripted", 3, False),
])  # fmt: skip
def test_races_are_for_measured_times_from_timing_version_3_on(
    kind: str, version: int, expected: bool
) -> None:
    environment = Environment(
        device="d", kind=kind, arch="sm_90", sm_count=1, max_shared_bytes=1, l2_bytes=1,
        memory_bytes=1, versions={},
    )  # fmt: skip
    assert has_races(environment, version) is expected
    assert not has_races(None, version)


# ---------------------------------------------------------------- whatever the races find

results = st.sampled_from([WON, WON, LOST, VOID])
values = st.floats(0.8, 1.2)
histories = st.lists(st.tuples(values, st.integers(0, 12)), max_size=12)


def drawn(data: st.DataObject, log: dict[tuple[int, int], list[RaceResult]]) -> Ask:
    """Any result for any race, so that results need not be transitive, and may differ when a race
    is run again; noted in `log`.
    """

    def ask(newcomer: int, holder: int) -> RaceResult:
        result = data.draw(results)
        log.setdefault((newcomer, holder), []).append(result)
        return result

    return ask


@given(st.data(), histories, st.integers(1, 4))
def test_a_newcomer_stands_above_the_holder_that_it_beat_and_all_others_keep_their_order(
    data: st.DataObject, history: list[tuple[float, int]], places: int
) -> None:
    population, log = Population(places, by_races=True), dict[tuple[int, int], list[RaceResult]]()
    for trial, (value, code) in enumerate(history):
        before = trials(population)
        settle(population, outcome(trial, value, code=f"code{code}"), drawn(data, log))
        after = trials(population)
        assert len(after) <= places and len(set(after)) == len(after)
        beaten = {
            holder
            for (newcomer, holder), found in log.items()
            if newcomer == trial and WON in found
        }
        if trial not in after:
            assert after == before and not beaten
            continue
        at = after.index(trial)
        assert [other for other in after if other != trial] == before[: places - 1]
        assert beaten == set(before[at : at + 1]), "it takes the place of the one that it beat"
        assert beaten or len(before) < places, "a held place must be won"


@given(st.data(), histories, st.integers(1, 4))
def test_races_run_downwards_and_end_with_the_first_one_that_is_won(
    data: st.DataObject, history: list[tuple[float, int]], places: int
) -> None:
    population = Population(places, by_races=True)
    for trial, (value, code) in enumerate(history):
        held = {elite.outcome.trial: elite.outcome for elite in population.elites}
        newcomer = outcome(trial, value, code=f"code{code}")
        past = settle(population, newcomer, drawn(data, {}))
        order = list(dict.fromkeys(race.holder for race in past))
        assert newcomer.score
        slower = [
            holder
            for holder, it in held.items()
            if it.score and newcomer.score.low <= it.score.high
        ]
        raced = slower if past else []  # none if it is a copy, or has lost before
        assert order == raced[: len(order)], "downwards, those left out that are clearly faster"
        for holder in order:
            found = [race.result for race in past if race.holder == holder]
            assert set(found[:-1]) <= {VOID} and len(found) <= ATTEMPTS
            assert found[-1] is not VOID or len(found) == ATTEMPTS
            if holder != order[-1]:
                assert found[-1] is not WON, "after one that is won there is no other"


@given(st.data(), histories)
def test_the_same_races_give_the_same_elites_and_ask_for_nothing_more(
    data: st.DataObject, history: list[tuple[float, int]]
) -> None:
    live, again = Population(by_races=True), Population(by_races=True)
    for trial, (value, code) in enumerate(history):
        newcomer = outcome(trial, value, code=f"code{code}")
        past = settle(live, newcomer, drawn(data, {}))
        for number in range(len(past)):
            assert again.rival_of(newcomer, past[:number]) == past[number].holder
        assert again.rival_of(newcomer, past) is None
        again.add(newcomer, None, past)
    assert live.elites == again.elites


@given(st.data(), histories)
def test_a_copy_of_a_population_changes_on_its_own(
    data: st.DataObject, history: list[tuple[float, int]]
) -> None:
    population = Population(by_races=True)
    for trial, (value, code) in enumerate(history):
        copy, before = population.copy(), population.elites
        newcomer = outcome(trial, value, code=f"code{code}")
        assert copy.would_take_place(newcomer) == population.would_take_place(newcomer)
        settle(population, newcomer, drawn(data, {}))
        assert copy.elites == before
