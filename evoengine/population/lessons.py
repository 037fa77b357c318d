"""Lessons: what models claim about their changes, with the effect that verdicts show.

A fold over settled trials in the order of their numbers. A lesson has the effect of the trial that
states it against that trial's best parent. What a later reply says of it counts for nothing: a
trial that applies the lesson confirms it by an effect of the same sign, and contradicts it by one
of the other sign, each outside of its interval. A lesson that is contradicted more often than it is
confirmed is struck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from evoengine import statistics
from evoengine.population.lineages import score_of
from evoengine.records import Interval, Lesson, Outcome, Status


@dataclass(frozen=True)
class Effect:
    """The speed of a trial over its best parent's, and whether it is surely more or less."""

    ratio: Interval | None = None
    is_rough: bool = False
    sign: int = 0


NO_EFFECT = Effect()
# A damaged store can hold any number; the quotient of two within this can be computed, and no
# score of a kernel comes near it.
MOST_SCORE = 1e100
# A kernel without an effect that is correct has no parent to compare it with; one that is rejected
# was not judged, and may be a correct one that was sent again.
SAYS_NOTHING = (Status.correct, Status.rejected)


class Lessons:
    """The lessons of a run."""

    def __init__(
        self,
        device: str,
        in_flight: int,
        resolution: float | None,
        is_coarse: Callable[[int], bool],
        carried: Iterable[Lesson] = (),
    ) -> None:
        """`resolution`, of modelled times: a smaller share of the time is no effect; None where
        times are measured. `is_coarse` says whether the timing of a settled trial stopped early.
        `carried` are lessons of earlier runs, numbered from 1.
        """
        self._device = device
        self._in_flight = in_flight
        self._resolution = resolution
        self._is_coarse = is_coarse
        self._lessons = {lesson.number: lesson for lesson in carried}
        self._stated: dict[int, int] = {}  # number -> the trial that stated it
        self._correct: dict[int, Outcome] = {}

    def add(self, outcome: Outcome, claim: str = "", applied: Sequence[int] = ()) -> None:
        """Adds the final outcome of a settled trial, with the claim of its reply ("": none) and the
        numbers of the lessons that it says it applies.
        """
        if claim or applied:
            effect = self._effect(outcome)
            numbers = dict.fromkeys(n for n in applied if self._was_known(n, outcome.trial))
            same = self._with_claim(claim)
            if same is not None:
                numbers[same] = None
            for number in numbers:
                self._apply(self._lessons[number], outcome, effect)
            if claim and same is None:
                self._state(claim, outcome, effect)
        if score_of(outcome) is not None:
            self._correct[outcome.trial] = outcome

    @property
    def all(self) -> tuple[Lesson, ...]:
        """All lessons by number, struck ones included."""
        return tuple(self._lessons.values())

    @property
    def ranked(self) -> tuple[Lesson, ...]:
        """The lessons with an effect or a failure that are not struck, the most useful first: by
        confirmations, then by the size of a sure effect, then the newest.
        """
        shown = (
            lesson
            for lesson in self._lessons.values()
            if not lesson.struck and (lesson.effect or lesson.status not in SAYS_NOTHING)
        )
        return tuple(sorted(shown, key=_usefulness, reverse=True))

    def _was_known(self, number: int, trial: int) -> bool:
        """Whether the prompt of `trial` could show the lesson: others are numbers made up."""
        if number not in self._lessons:
            return False
        return number not in self._stated or self._stated[number] <= trial - self._in_flight

    def _with_claim(self, claim: str) -> int | None:
        """The lesson of this run with the same words."""
        return next(
            (n for n in self._stated if _words(self._lessons[n].claim) == _words(claim)), None
        )

    def _state(self, claim: str, outcome: Outcome, effect: Effect) -> None:
        number = len(self._lessons) + 1
        self._stated[number] = outcome.trial
        self._lessons[number] = Lesson(
            number=number,
            claim=claim,
            trial=outcome.trial,
            tier=outcome.tier,
            status=outcome.status,
            effect=effect.ratio,
            is_rough=effect.is_rough,
            sign=effect.sign,
            device=self._device,
            is_modelled=self._resolution is not None,
            trials=(outcome.trial,),
        )

    def _apply(self, lesson: Lesson, outcome: Outcome, effect: Effect) -> None:
        """Counts a trial that makes the change of `lesson`."""
        updates: dict[str, object] = {"trials": (*lesson.trials, outcome.trial)}
        if effect.sign and not lesson.sign:
            updates |= {
                "trial": outcome.trial,
                "tier": outcome.tier,
                "status": outcome.status,
                "effect": effect.ratio,
                "is_rough": effect.is_rough,
                "sign": effect.sign,
            }
        elif effect.sign:
            confirmed = lesson.confirmed + (effect.sign == lesson.sign)
            contradicted = lesson.contradicted + (effect.sign != lesson.sign)
            updates |= {
                "confirmed": confirmed,
                "contradicted": contradicted,
                "struck": contradicted > confirmed,
            }
        self._lessons[lesson.number] = lesson.model_copy(update=updates)

    def _effect(self, outcome: Outcome) -> Effect:
        """Of a correct trial with a correct parent of its tier; else none."""
        parents = [self._correct[n] for n in outcome.parents if n in self._correct]
        scores = {
            parent.trial: score
            for parent in parents
            if parent.tier == outcome.tier and (score := _usable_score(parent))
        }
        own = _usable_score(outcome)
        if not scores or own is None:
            return NO_EFFECT
        parent = min(scores, key=lambda trial: scores[trial].value)
        ratio = statistics.quotient(scores[parent], own)
        is_rough = self._is_coarse(outcome.trial) or self._is_coarse(parent)
        margin = 1 + (self._resolution or 0.0)
        sign = (ratio.low > margin) - (ratio.high < 1 / margin)
        return Effect(ratio, is_rough, sign)


def _usable_score(outcome: Outcome) -> Interval | None:
    """The score of a correct trial, if it has a logarithm."""
    score = outcome.score if score_of(outcome) is not None else None
    if score is None:
        return None
    figures = (score.low, score.value, score.high)
    return score if all(1 / MOST_SCORE < figure < MOST_SCORE for figure in figures) else None


def _words(claim: str) -> list[str]:
    return claim.casefold().rstrip(".").split()


def _usefulness(lesson: Lesson) -> tuple[int, float, bool, int]:
    """Of those without an effect, failures come last; lessons of earlier runs are the oldest."""
    size = abs(math.log(lesson.effect.value)) if lesson.effect and lesson.sign else 0.0
    return (
        lesson.confirmed - lesson.contradicted,
        size,
        lesson.effect is not None,
        0 if lesson.run else lesson.number,
    )
