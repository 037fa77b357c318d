"""Which place a newcomer takes where times are measured: races decide, one holder at a time.

Races are not transitive, so their order is part of the rule: a newcomer starts below the last
holder and races upwards, one holder after the other, until it does not win. It stands directly
below the holder that it did not beat. Where all places are held, it must beat the last holder to
enter, and that one leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evoengine.protocols import PastRace
from evoengine.records import Interval, RaceResult

ATTEMPTS = 3  # a race that is void so often is not won


@dataclass(frozen=True)
class RankedHolder:
    """A holder as the rule sees it: its trial, and the score that it holds its place by."""

    trial: int
    score: Interval


@dataclass(frozen=True)
class Climb:
    """How far a newcomer has come: `index` counts from 0, None if it has not entered yet.

    `rival` is the trial of the holder that it races next; None if its place is decided.
    """

    index: int | None
    rival: int | None


def climb(
    holders: Sequence[RankedHolder], places: int, score: Interval, races: Iterable[PastRace]
) -> Climb:
    """Where a newcomer with `score` stands after `races`, which were run in this order.

    It is not raced against a holder whose interval lies wholly below its own: that one is faster.
    """
    past = list(races)
    index = len(holders) if len(holders) < places else None
    for position in reversed(range(len(holders))):
        holder = holders[position]
        if score.low > holder.score.high:
            break
        result = _result_against(holder.trial, past)
        if result is None:
            return Climb(index, holder.trial)
        if result is not RaceResult.won:
            break
        index = position
    return Climb(index, None)


def _result_against(holder: int, races: Sequence[PastRace]) -> RaceResult | None:
    """The result against one holder; None if it must race it, for the first time or again."""
    results = [race.result for race in races if race.holder == holder]
    for result in results:
        if result is not RaceResult.void:
            return result
    return RaceResult.void if len(results) >= ATTEMPTS else None
