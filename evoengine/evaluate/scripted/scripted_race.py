"""A race that is drawn from the digests of both candidates."""

from __future__ import annotations

from random import Random

from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import derived_seed
from evoengine.evaluate.scripted.scripted_verdict import VerdictRule, drawn_score
from evoengine.records import Interval, Race, RaceResult
from evoengine.statistics import exact

NOISE = 0.005  # half of the interval around the ratio


def scripted_race(newcomer: Candidate, holder: Candidate, rule: VerdictRule) -> Race:
    """The race that `rule` draws for both: the same each time."""
    luck = Random(derived_seed(newcomer.digest, holder.digest))  # noqa: S311 - must repeat
    ours, theirs = drawn_score(newcomer, rule), drawn_score(holder, rule)
    ratio = ours / theirs
    interval = Interval(value=ratio, low=ratio * (1 - NOISE), high=ratio * (1 + NOISE))
    if luck.random() < rule.void_share:
        result, reason = RaceResult.void, "scripted void"
    elif interval.high < 1:
        result, reason = RaceResult.won, "faster"
    else:
        result, reason = RaceResult.lost, "not faster"
    return Race(
        result=result, reason=reason, ratio=interval, newcomer=exact(ours), holder=exact(theirs)
    )
