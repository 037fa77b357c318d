"""The elites of a run: a few places in every precision tier."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

from evoengine.digest import digest_json
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


def resolution_of(environment: Environment | None) -> float:
    """The share by which a newcomer must beat an elite, beyond the noise of both: 0 if times are
    measured.
    """
    return MODEL_RESOLUTION if environment is not None and environment.is_modelled else 0.0


class Population:
    """The elites of each tier: a fold over settled trials in the order of their numbers, so that
    the same outcomes give the same elites.

    Each tier has `places` places, ordered by score (lower is better), the older trial first among
    equals. A correct candidate takes a place while one is free. After that it must beat the last
    place by more than the noise of both scores (`beats`) and replaces it: the score of the last
    place never rises, so a rejected candidate was never significantly better than a later elite. A
    candidate with the same machine code and plan as an elite of its tier is the same candidate: it
    takes no second place, and a lucky measurement of it does not improve the elite's score.
    """

    def __init__(self, places: int = 3, resolution: float = 0.0) -> None:
        """`resolution`: score differences up to this share of the score are ignored."""
        if places < 1:
            raise ValueError(f"places must be >= 1, got {places!r}")
        self._places = places
        self._resolution = resolution
        self._tiers: dict[str, list[_Holder]] = {}

    def would_take_place(self, outcome: Outcome) -> bool:
        """Whether `outcome` would take a place, so that it must be verified before `add`."""
        return self._candidate(outcome) is not None

    def add(self, outcome: Outcome, verified: Outcome | None = None) -> int | None:
        """Adds a settled trial; returns the place, from 1, that it takes in its tier, or None.

        For a verified trial only the verification counts: its score is used, and the trial takes
        no place unless the verification was `correct` too.
        """
        newcomer = self._candidate(outcome.after(verified))
        if newcomer is None:
            return None
        holders = self._tiers.setdefault(newcomer.outcome.tier, [])
        del holders[self._places - 1 :]
        at = bisect.bisect(holders, newcomer.order, key=lambda holder: holder.order)
        holders.insert(at, newcomer)
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
        score = outcome.score
        if (
            outcome.status is not Status.correct
            or score is None
            or not all(map(math.isfinite, (score.value, score.low, score.high)))
        ):
            return None
        holders = self._tiers.get(outcome.tier, [])
        if any(_identity(holder.outcome) == _identity(outcome) for holder in holders):
            return None
        return (
            _Holder(score, outcome)
            if len(holders) < self._places or self._beats(score, holders[-1].score)
            else None
        )

    def _beats(self, newcomer: Interval, holder: Interval) -> bool:
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
