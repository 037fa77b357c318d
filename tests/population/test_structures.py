"""Which sources are promising: the best trial of each, near the last elite of its tier."""

from __future__ import annotations

from evoengine.population.structures import MOST_STRUCTURES, PROMISING_FACTOR, Structures
from evoengine.records import Elite, Interval, Outcome, Status


def outcome(
    trial: int, source: str, score: float | None, tier: str = "fp32", **tunables: int
) -> Outcome:
    """Correct with a score, else a crash."""
    figure = None if score is None else Interval(value=score, low=score, high=score)
    return Outcome(
        trial=trial,
        operator="mutate",
        parents=(),
        source_digest=source,
        tunables=tunables,
        label="",
        status=Status.crash if figure is None else Status.correct,
        reason="",
        tier=tier,
        code_digest="",
        score=figure,
        latency_us=figure,
    )


def elite(score: float, place: int = 1, tier: str = "fp32") -> Elite:
    return Elite(tier=tier, place=place, outcome=outcome(99, "held", score, tier))


def structures(*outcomes: Outcome) -> Structures:
    found = Structures()
    for item in outcomes:
        found.add(item)
    return found


def test_sources_within_the_factor_of_the_last_elite_of_their_tier_are_promising() -> None:
    near, far = 2.0 * PROMISING_FACTOR, 2.01 * PROMISING_FACTOR
    found = structures(
        outcome(0, "a", 1.0), outcome(1, "b", near), outcome(2, "c", far), outcome(3, "d", 9.0, "t")
    )
    assert found.promising([elite(1.0, 1), elite(2.0, 2)]) == [0, 1]
    assert found.promising([elite(1.0), elite(9.0, tier="t")]) == [0, 3]
    assert found.promising([]) == []


def test_each_source_is_there_once_with_its_best_trial() -> None:
    found = structures(
        outcome(0, "a", 1.4), outcome(1, "b", 1.2), outcome(2, "a", 1.1), outcome(3, "a", 1.3)
    )
    assert found.promising([elite(1.0)]) == [2, 1]


def test_a_configuration_that_fails_does_not_exclude_its_source() -> None:
    before = structures(outcome(0, "a", 1.0))
    after = structures(outcome(0, "a", 1.0), outcome(1, "a", None, X=1), outcome(2, "a", None, X=2))
    assert before.promising([elite(1.0)]) == after.promising([elite(1.0)]) == [0]
    assert [item.trial for item in after.tried("a", 2)] == [0, 1]


def test_a_source_that_was_never_correct_is_not_promising() -> None:
    assert structures(outcome(0, "a", None)).promising([elite(1.0)]) == []


def test_of_a_tier_only_the_best_few_are_kept_waiting_for_a_tuner() -> None:
    many = [outcome(trial, f"s{trial}", 1.4 - trial / 100) for trial in range(20)]
    assert structures(*many).promising([elite(1.0)]) == list(range(19, 19 - MOST_STRUCTURES, -1))
