"""Lessons: what states, confirms and strikes them, and which comes first."""

from __future__ import annotations

import math

import pytest

from evoengine.population.lessons import Lessons
from evoengine.records import Interval, Lesson, Outcome, Status

SPREAD = 0.01


def outcome(
    trial: int, score: float | None, parents: tuple[int, ...] = (0,), tier: str = "fp32"
) -> Outcome:
    """A settled trial; its score is known within SPREAD."""
    return Outcome(
        trial=trial,
        operator="mutate",
        parents=parents,
        source_digest=str(trial),
        tunables={},
        label="",
        status=Status.compile_error if score is None else Status.correct,
        reason="",
        tier=tier,
        code_digest=str(trial),
        score=score and Interval(value=score, low=score * (1 - SPREAD), high=score * (1 + SPREAD)),
        latency_us=None,
    )


def lessons(
    in_flight: int = 1,
    resolution: float | None = None,
    coarse: tuple[int, ...] = (),
    carried: tuple[Lesson, ...] = (),
) -> Lessons:
    """Of a run whose trial 0 is a starting kernel with the score 1."""
    found = Lessons("NVIDIA H200", in_flight, resolution, coarse.__contains__, carried)
    found.add(outcome(0, 1.0, ()))
    return found


def test_a_lesson_has_the_speed_of_its_trial_over_the_best_parents() -> None:
    found = lessons()
    found.add(outcome(1, 0.9))
    found.add(outcome(2, 0.8, (0, 1)), "a ring of three stages")
    (lesson,) = found.all
    assert (lesson.number, lesson.trial, lesson.sign) == (1, 2, 1)
    assert lesson.effect is not None
    assert lesson.effect.value == pytest.approx(0.9 / 0.8)
    # 1 % on each side of both scores
    assert lesson.effect.low == pytest.approx(0.9 / 0.8 * (1 - 2**0.5 * SPREAD), rel=1e-3)
    assert lesson.effect.high == pytest.approx(0.9 / 0.8 * (1 + 2**0.5 * SPREAD), rel=1e-3)
    assert (lesson.device, lesson.status, lesson.trials) == ("NVIDIA H200", Status.correct, (2,))


def test_a_lesson_of_a_failed_trial_has_the_failure_and_no_effect() -> None:
    found = lessons()
    found.add(outcome(1, None), "wgmma")
    (lesson,) = found.ranked
    assert (lesson.status, lesson.effect, lesson.sign) == (Status.compile_error, None, 0)


def test_a_kernel_that_was_refused_before_it_was_judged_is_no_failure_of_its_lesson() -> None:
    """It may be a correct one that was sent again."""
    found = lessons()
    refused = outcome(1, None).model_copy(update={"status": Status.rejected})
    found.add(refused, "three stages")
    assert found.ranked == () and found.all[0].effect_words == "not judged"
    found.add(outcome(2, 0.9), applied=(1,))
    assert [lesson.sign for lesson in found.ranked] == [1]


@pytest.mark.parametrize(
    "figures",
    [
        (0.0, 0.9, 1.0),
        (0.9, 0.0, 1.0),
        (0.9, -1.0, 1.0),
        (1e-300, 1.0, 1e300),
        (0.9, math.nan, 1.0),
    ],
)
def test_a_score_that_a_damaged_store_holds_is_no_effect_and_stops_nothing(
    figures: tuple[float, float, float],
) -> None:
    found = lessons()
    low, value, high = figures
    wrong = Interval(value=value, low=low, high=high)
    found.add(outcome(1, 0.9).model_copy(update={"score": wrong}), "three stages")
    found.add(outcome(2, 0.8, (1,)), "four stages")
    found.add(outcome(3, 0.8), "two stages")
    assert [lesson.effect is None for lesson in found.all] == [True, True, False]
    assert [lesson.claim for lesson in found.ranked] == ["two stages"]


def test_a_correct_trial_without_a_parent_of_its_tier_shows_nothing() -> None:
    found = lessons()
    found.add(outcome(1, 0.9, ()), "a first sample")
    found.add(outcome(2, 0.5, (0,), "fp16"), "half the bytes")
    assert [lesson.effect for lesson in found.all] == [None, None]
    assert found.ranked == ()


@pytest.mark.parametrize(
    ("score", "confirmed", "contradicted"),
    [(0.95, 1, 0), (1.05, 0, 1), (1.005, 0, 0), (None, 0, 0)],
    ids=["faster", "slower", "within the interval", "failed"],
)
def test_a_trial_that_applies_a_lesson_counts_by_its_own_effect(
    score: float | None, confirmed: int, contradicted: int
) -> None:
    found = lessons()
    found.add(outcome(1, 0.9), "three stages")
    found.add(outcome(2, score), applied=(1,))
    (lesson,) = found.all
    assert (lesson.confirmed, lesson.contradicted) == (confirmed, contradicted)
    assert lesson.struck == (contradicted > confirmed) and lesson.trials == (1, 2)
    assert found.ranked == (() if lesson.struck else (lesson,))


def test_a_change_that_is_slower_again_confirms_its_lesson() -> None:
    found = lessons()
    found.add(outcome(1, 1.1), "four stages")
    found.add(outcome(2, 1.2), applied=(1,))
    assert [(item.sign, item.confirmed) for item in found.ranked] == [(-1, 1)]


def test_a_confirmed_lesson_is_struck_by_more_trials_against_it_than_for_it() -> None:
    found = lessons()
    found.add(outcome(1, 0.9), "three stages")
    for trial, score in enumerate((0.9, 1.1, 1.1), start=2):
        assert not found.all[0].struck
        found.add(outcome(trial, score), applied=(1,))
    assert found.all[0].struck and found.ranked == ()


def test_the_same_claim_is_no_second_lesson_but_counts_for_the_first() -> None:
    found = lessons()
    found.add(outcome(1, 0.9), "Three stages.")
    found.add(outcome(2, 0.9), "three  stages")
    assert [(item.confirmed, item.trials) for item in found.all] == [(1, (1, 2))]


def test_a_lesson_without_a_sure_effect_gets_that_of_the_first_trial_that_has_one() -> None:
    found = lessons()
    found.add(outcome(1, None), "wgmma")
    found.add(outcome(2, 0.8), applied=(1,))
    (lesson,) = found.all
    assert (lesson.trial, lesson.status, lesson.sign) == (2, Status.correct, 1)
    assert (lesson.confirmed, lesson.contradicted) == (0, 0)


def test_a_number_that_the_prompt_could_not_show_counts_for_nothing() -> None:
    found = lessons(in_flight=3)
    found.add(outcome(1, 0.9), "three stages")
    for trial in (2, 3):
        found.add(outcome(trial, 0.9), applied=(1, 7))
    assert found.all[0].confirmed == 0
    found.add(outcome(4, 0.9), applied=(1, 7))
    assert found.all[0].confirmed == 1 and len(found.all) == 1


def test_confirmed_lessons_come_first_then_large_effects_then_new_ones_and_failures_last() -> None:
    found = lessons()
    found.add(outcome(1, None), "failed")
    found.add(outcome(2, 0.95), "small")
    found.add(outcome(3, 0.5), "large")
    found.add(outcome(4, 2.0), "large and slower, newer")
    found.add(outcome(5, 1.001), "no sure effect")
    found.add(outcome(6, 0.9), applied=(2,))
    assert [lesson.number for lesson in found.ranked] == [2, 4, 3, 5, 1]


def test_modelled_effects_within_the_resolution_are_not_sure() -> None:
    found = lessons(resolution=0.1)
    found.add(outcome(1, 0.93), "seven percent")
    found.add(outcome(2, 0.8), "twenty-five percent")
    assert [(item.sign, item.is_modelled) for item in found.all] == [(0, True), (1, True)]


def test_an_effect_is_rough_where_a_timing_stopped_early() -> None:
    found = lessons(coarse=(1,))
    found.add(outcome(1, 1.5), "slow")
    found.add(outcome(2, 1.2, (1,)), "from a rough parent")
    found.add(outcome(3, 0.9), "whole")
    assert [item.is_rough for item in found.all] == [True, True, False]


def test_carried_lessons_are_struck_as_others_are_and_numbers_go_on_after_them() -> None:
    earlier = lessons()
    earlier.add(outcome(1, 0.9), "three stages")
    carried = tuple(item.model_copy(update={"run": "one", "trials": ()}) for item in earlier.all)
    found = lessons(in_flight=8, carried=carried)
    found.add(outcome(1, 1.2), "new", applied=(1,))
    assert [(item.number, item.struck) for item in found.all] == [(1, True), (2, False)]
    assert [item.claim for item in found.ranked] == ["new"]
