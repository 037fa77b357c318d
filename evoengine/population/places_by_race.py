"""Which place a newcomer takes where times are measured: races decide, one holder at a time.

Races are not transitive, so their order is part of the rule: a newcomer races the holders from the
first place downwards until it wins, and stands directly above the holder that it beat. One that
beats nobody stands last if a place is free. Where all places are held, the last holder leaves.
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
class Standing:
    """Where a newcomer stands: `index` counts from 0, None without a place or while it races.

    `rival` is the trial of the holder that it races next; None if its place is decided.
    """

    index: int | None
    rival: int | None


def standing(
    holders: Sequence[RankedHolder], places: int, score: Interval, races: Iterable[PastRace]
) -> Standing:
    """Where a newcomer with `score` stands after `races`, which were run in this order.

    It is not raced against a holder whose interval lies wholly below its own: that one is faster.
    """
    past = list(races)
    for position, holder in enumerate(holders):
        if score.low > holder.score.high:
            continue
        result = _result_against(holder.trial, past)
        if result is None:
            return Standing(None, holder.trial)
        if result is RaceResult.won:
            return Standing(position, None)
    return Standing(len(holders) if len(holders) < places else None, None)


def _result_against(holder: int, races: Sequence[PastRace]) -> RaceResult | None:
    """The result against one holder; None if it must race it, for the first time or again."""
    results = [race.result for race in races if race.holder == holder]
    for result in results:
        if result is not RaceResult.void:
            return result
    return RaceResult.void if len(results) >= ATTEMPTS else None
