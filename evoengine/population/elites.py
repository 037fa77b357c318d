"""The elites of a run: a few places in every precision tier."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evoengine.digest import digest_json
from evoengine.population.places_by_race import RankedHolder, Standing, standing
from evoengine.protocols import PastRace
from evoengine.records import Elite, Environment, Interval, Outcome, Status


@dataclass(frozen=True)
class _Holder:
    """An elite, with the score that it holds its place by."""

    score: Interval
    outcome: Outcome

    @property
    def order(self) -> tuple[float, int]:
        return self.score.value, self.outcome.trial


# modelled times that differ by less count as equal: published models are 5 to 17 % off
MODEL_RESOLUTION = 0.01
FIRST_VERSION_WITH_RACES = 3  # of records.TIMING_VERSION
# A race is won by 0.7 % or more (`statistics.WINNING_RATIO`): a newcomer whose first verdict is not
# this much below the last holder's score is not verified.
WORTH_A_RACE = 0.996


def resolution_of(environment: Environment | None) -> float:
    """The share by which a newcomer must beat an elite, beyond the noise of both: 0 if times are
    measured.
    """
    return MODEL_RESOLUTION if environment is not None and environment.is_modelled else 0.0


def has_races(environment: Environment | None, timing_version: int) -> bool:
    """Whether races decide over the places of a run whose verdicts have that timing version."""
    measured = environment is not None and not environment.is_modelled
    return measured and timing_version >= FIRST_VERSION_WITH_RACES


class Population:
    """The elites of each tier: a fold over settled trials in the order of their numbers, so that
    the same outcomes and races give the same elites.

    Each tier has `places` places. Where times are measured, races decide who holds which
    (`places_by_race`). Where they are modelled, and in runs of timing versions 1 and 2, the scores
    do: a correct candidate takes a place while one is free; after that it must beat the last place
    by more than the noise of both scores (`beats`) and replaces it; elites are ordered by score
    (lower is better), the older trial first among equals.

    A candidate with the same machine code and plan as an elite of its tier is the same candidate:
    it takes no second place. Nor does one that lost its races, however often it is proposed again:
    one race in a hundred between equals is won by chance.
    """

    def __init__(self, places: int = 3, resolution: float = 0.0, *, by_races: bool = False) -> None:
        """`resolution`: score differences up to this share of the score are ignored; of no use
        where places are given `by_races`.
        """
        if places < 1:
            raise ValueError(f"places must be >= 1, got {places!r}")
        self._places = places
        self._resolution = resolution
        self._by_races = by_races
        self._tiers: dict[str, tuple[_Holder, ...]] = {}
        # where races decide, candidates that had their races in a tier and hold no place
        self._beaten: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of_run(
        cls, places: int, environment: Environment | None, timing_version: int
    ) -> Population:
        """The empty population of a run whose verdicts were made with that version."""
        by_races = has_races(environment, timing_version)
        return cls(places, resolution_of(environment), by_races=by_races)

    def copy(self) -> Population:
        """A population with the same elites, which changes on its own."""
        same = Population(self._places, self._resolution, by_races=self._by_races)
        same._tiers, same._beaten = dict(self._tiers), self._beaten
        return same

    def would_take_place(self, outcome: Outcome) -> bool:
        """Whether `outcome` would take a place, so that it must be verified before `add`; where
        races decide, whether it may take one.
        """
        return self._candidate(outcome) is not None

    def likely_takes_place(self, outcome: Outcome, earlier: Iterable[Outcome]) -> bool:
        """Whether `outcome` would take a place if all of `earlier`, the first outcomes of trials
        that are not settled yet, held the places that their scores promise.
        """
        if outcome.score is None or not self.would_take_place(outcome):
            return False
        scores = [holder.score.value for holder in self._tiers.get(outcome.tier, ())]
        scores += [
            other.score.value
            for other in earlier
            if other.score and other.tier == outcome.tier and self.would_take_place(other)
        ]
        best = sorted(scores)[: self._places]
        return len(best) < self._places or outcome.score.value < best[-1]

    def bar(self, tier: str) -> float | None:
        """The score of the last elite of a tier, which a newcomer must beat; None while a place is
        free.
        """
        holders = self._tiers.get(tier, ())
        return holders[-1].score.value if len(holders) >= self._places else None

    def gains(self, before: Outcome, now: Outcome) -> bool:
        """Whether `now`, which holds the first place of a tier, is faster than `before`, which held
        it earlier, by more than the noise of both. Where races decide, it is: it won one.
        """
        if self._by_races:
            return now.trial != before.trial
        ours, theirs = now.score, before.score
        return ours is not None and theirs is not None and self._is_below(ours, theirs)

    def rival_of(self, outcome: Outcome, races: Sequence[PastRace]) -> int | None:
        """The trial that a verified newcomer races next, after `races`; None if its place is
        decided.
        """
        if not self._by_races or (newcomer := self._raced(outcome)) is None:
            return None
        return self._standing(newcomer, races).rival

    def add(
        self, outcome: Outcome, verified: Outcome | None = None, races: Sequence[PastRace] = ()
    ) -> int | None:
        """Adds a settled trial; returns the place, from 1, that it takes in its tier, or None.

        For a verified trial only the verification counts: its score is used, and the trial takes
        no place unless the verification was `correct` too.
        """
        final = outcome.after(verified)
        newcomer = self._raced(final) if self._by_races else self._candidate(final)
        if newcomer is None:
            return None
        holders = self._tiers.get(newcomer.outcome.tier, ())
        at = (
            self._standing(newcomer, races).index
            if self._by_races
            else bisect.bisect(
                holders[: self._places - 1], newcomer.order, key=lambda holder: holder.order
            )
        )
        kept = holders[: self._places - 1]
        out = [newcomer] if at is None else holders[self._places - 1 :]
        self._beaten |= {(it.outcome.tier, _identity(it.outcome)) for it in out if self._by_races}
        if at is None:
            return None
        self._tiers[newcomer.outcome.tier] = (*kept[:at], newcomer, *kept[at:])
        return at + 1

    @property
    def elites(self) -> tuple[Elite, ...]:
        """All elites, by tier and place."""
        return tuple(
            Elite(tier=tier, place=place, outcome=holder.outcome)
            for tier in sorted(self._tiers)
            for place, holder in enumerate(self._tiers[tier], start=1)
        )

    def _candidate(self, outcome: Outcome) -> _Holder | None:
        """`outcome` as the holder of a place; None if it would not take one."""
        newcomer, holders = self._raced(outcome), self._tiers.get(outcome.tier, ())
        if newcomer is None or len(holders) < self._places:
            return newcomer
        return newcomer if self._beats(newcomer.score, holders[-1].score) else None

    def _raced(self, outcome: Outcome) -> _Holder | None:
        """`outcome` as the holder of a place if races allow; None if it is no candidate for one."""
        score = outcome.score
        if (
            outcome.status is not Status.correct
            or score is None
            or not all(map(math.isfinite, (score.value, score.low, score.high)))
        ):
            return None
        holders, identity = self._tiers.get(outcome.tier, ()), _identity(outcome)
        if any(_identity(holder.outcome) == identity for holder in holders):
            return None
        return None if (outcome.tier, identity) in self._beaten else _Holder(score, outcome)

    def _standing(self, newcomer: _Holder, races: Sequence[PastRace]) -> Standing:
        """Where it stands after `races`."""
        holders = [
            RankedHolder(holder.outcome.trial, holder.score)
            for holder in self._tiers.get(newcomer.outcome.tier, ())
        ]
        return standing(holders, self._places, newcomer.score, races)

    def _beats(self, newcomer: Interval, holder: Interval) -> bool:
        """Whether it may beat the last holder: where races decide that, whether it is worth one."""
        if self._by_races:
            return newcomer.value < WORTH_A_RACE * holder.value
        return self._is_below(newcomer, holder)

    def _is_below(self, newcomer: Interval, holder: Interval) -> bool:
        """Whether it is below by more than the interval of their difference, and by more than what
        modelled times can tell apart.
        """
        return (
            beats(newcomer, holder)
            and holder.value - newcomer.value > self._resolution * holder.value
        )


def beats(newcomer: Interval, holder: Interval) -> bool:
    """Whether `newcomer` is below `holder` by more than the interval of their difference.

    The half-widths that face each other add in quadrature, as for independent
    measurements. To require intervals that do not overlap would require up to sqrt(2)
    times as much, and would reject differences that are significant at 95 %
    (Schenker and Gentleman, The American Statistician 55(3), 2001).
    """
    return holder.value - newcomer.value > math.hypot(
        newcomer.high - newcomer.value, holder.value - holder.low
    )


def _identity(outcome: Outcome) -> str:
    return outcome.code_digest or digest_json([outcome.source_digest, outcome.tunables])
