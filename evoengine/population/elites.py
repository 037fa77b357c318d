"""The elites of a run: a few places in every precision tier."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

from evoengine.digest import digest_json
from evoengine.records import Elite, Environment, Interval, Outcome, Status


@dataclass(frozen=True)
class _Holder:
    """Who holds a place, with the score that it holds it by."""

    score: Interval
    outcome: Outcome

    @property
    def order(self) -> tuple[float, int]:
        return self.score.value, self.outcome.trial


# modelled times that differ by less are taken as equal: published models are 5 to 17 % off
MODEL_RESOLUTION = 0.01


def resolution_of(environment: Environment | None) -> float:
    """The share by which a newcomer must be better than an elite, beyond the noise of both: 0 where
    times are measured.
    """
    return MODEL_RESOLUTION if environment is not None and environment.is_modelled else 0.0


class Population:
    """A fold over settled trials in the order of their numbers; the same outcomes give the same
    elites.

    Each tier has `places` places, ordered by score (lower is better), the older trial first among
    equals. A correct candidate takes a place while one is free. After that it must beat the last
    place by more than the noise of both figures (`beats`), and pushes that one out: the score of
    the last place never rises, so a candidate that was turned away was never significantly better
    than any elite that came later. A candidate with the machine code and plan of an elite of its
    tier is the same candidate: it takes no second place, nor does a lucky measurement of it improve
    the first one's score.
    """

    def __init__(self, places: int = 3, resolution: float = 0.0) -> None:
        """`resolution` is the share of a score below which a difference counts for nothing."""
        if places < 1:
            raise ValueError(f"places must be >= 1, got {places!r}")
        self._places = places
        self._resolution = resolution
        self._tiers: dict[str, list[_Holder]] = {}

    def would_take_place(self, outcome: Outcome) -> bool:
        """Whether `outcome` would take a place, so that it must be verified before `tell`."""
        return self._candidate(outcome) is not None

    def tell(self, outcome: Outcome, verified: Outcome | None = None) -> int | None:
        """The place, from 1, that a settled trial takes in its tier; None when it takes none.

        Of a verified trial only the verification counts: its score, and no place at all unless it
        found `correct` too.
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
        """All holders of places, by tier and place."""
        return tuple(
            Elite(tier=tier, place=place, outcome=holder.outcome)
            for tier in sorted(self._tiers)
            for place, holder in enumerate(self._tiers[tier], start=1)
        )

    def _candidate(self, outcome: Outcome) -> _Holder | None:
        """`outcome` as the holder of a place, None when it deserves none."""
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
    measurements. To ask for intervals that do not overlap would ask for up to sqrt(2)
    times as much, and would turn away differences that are significant at 95 %
    (Schenker and Gentleman, The American Statistician 55(3), 2001).
    """
    return holder.value - newcomer.value > math.hypot(
        newcomer.high - newcomer.value, holder.value - holder.low
    )


def _identity(outcome: Outcome) -> str:
    return outcome.code_digest or digest_json([outcome.source_digest, outcome.tunables])
