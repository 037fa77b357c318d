"""Statistics of raw samples: ratios and medians with intervals, and their geometric mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache

from evoengine.records import CaseTiming, Interval, RaceTiming, Samples

OUTSIDE_PERMILLE = 25  # outside a 95 % interval, on each side
# Captures from which an interval is taken; a measurement with fewer gives that of its samples.
ENOUGH_GROUPS = 4
# By how much the ratio of one kernel to its baseline differs from one sitting to the next, beyond
# what the groups of each show: a standard deviation. Measured on an H200, where the time of cuDNN's
# attention wanders by 0.7 % within a second or two.
SITTING_SHARE = 0.007
NORMAL_95 = 1.96
# A newcomer wins no race by less than this; one that shows less than half of it is not going to.
WINNING_RATIO, HOPELESS_RATIO = 0.993, 0.9965
# Student's t, 97.5 % and 99.5 %, for 1, 2, ... degrees of freedom; the last for all more.
_T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16)
_T_99 = (63.66, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.25, 3.169, 3.106, 3.055, 3.012)


def median(samples: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle values for an even count."""
    ordered = sorted(samples)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(samples: Sequence[float]) -> Interval:
    """The median with its distribution-free 95 % interval, between two order statistics.

    Source: Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2, with the
    exact binomial. With fewer than 9 samples the interval is the whole range.
    """
    ordered = sorted(samples)
    outside = _outside(len(ordered))
    return Interval(value=median(ordered), low=ordered[outside], high=ordered[-1 - outside])


@cache
def _outside(count: int) -> int:
    """The number of samples on each side outside the narrowest symmetric 95 % interval of the
    median.

    The number of samples below the median is binomial with p = 1/2.
    """
    allowed = OUTSIDE_PERMILLE * 2**count // 1000
    ways = tail = 1  # for exactly 0 samples below the median; for at most 0
    outside = 0
    while tail <= allowed:
        outside += 1
        ways = ways * (count - outside + 1) // outside
        tail += ways
    return max(0, outside - 1)


def group_interval(
    figures: Sequence[float],
    groups: Sequence[int],
    *,
    sitting_share: float = 0.0,
    strict: bool = False,
) -> Interval:
    """The figure of several groups of samples with its 95 % interval, or 99 % where `strict`.

    Samples that follow one another are not independent: clocks and caches wander. The medians of
    groups are nearly so, and the interval is Student's t over their logarithms. What stays the same
    over all groups of a sitting, they cannot show: `sitting_share`, a standard deviation, is added
    to it. With fewer than ENOUGH_GROUPS, or without `groups`, as in rows of timing versions 1 and
    2, the groups' part is the interval of the samples' median, which is too narrow.
    """
    by_group: dict[int, list[float]] = {}
    for figure, group in zip(figures, groups, strict=False):
        by_group.setdefault(group, []).append(figure)
    if len(by_group) < ENOUGH_GROUPS:
        found, wider = median_interval(figures), math.exp(NORMAL_95 * sitting_share)
        return Interval(value=found.value, low=found.low / wider, high=found.high * wider)
    logs = [math.log(median(samples)) for samples in by_group.values()]
    mean = sum(logs) / len(logs)
    variance = sum((log - mean) ** 2 for log in logs) / (len(logs) - 1)
    table = _T_99 if strict else _T_95
    spread = table[min(len(logs) - 1, len(table)) - 1] * math.sqrt(variance / len(logs))
    half = math.hypot(spread, NORMAL_95 * sitting_share)
    return Interval(value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def paired_ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Each of `ours` over the sample of `theirs` that was taken beside it."""
    return [one / other for one, other in zip(ours, theirs, strict=True)]


def ratio_interval(timing: CaseTiming, cold: bool = False) -> Interval:
    """Candidate time / baseline time, pair by pair, so that clock drift cancels."""
    return samples_ratio(_samples(timing, cold))


def samples_ratio(samples: Samples) -> Interval:
    """Candidate time / baseline time of paired samples."""
    ratios = paired_ratios(samples.candidate_us, samples.baseline_us)
    return group_interval(ratios, samples.groups, sitting_share=_sitting_share(samples))


def race_ratio(timing: RaceTiming) -> Interval:
    """The newcomer's time / the holder's on one case, with its 99 % interval, because a race is
    looked at more than once; with fewer than ENOUGH_GROUPS, with that of the samples' median.
    """
    ratios = paired_ratios(timing.newcomer_us, timing.holder_us)
    return group_interval(ratios, timing.groups, strict=True)


def race_is_plain(timings: Sequence[RaceTiming], faster: float, slower: float) -> bool:
    """Whether each group of samples shows that the newcomer is faster by more than the share
    `faster`, or each that it is slower by more than `slower`.
    """
    logs = dict[int, float]()  # by group, of all cases together
    for timing in timings:
        ratios = paired_ratios(timing.newcomer_us, timing.holder_us)
        for group in set(timing.groups):
            of_group = [it for it, its in zip(ratios, timing.groups, strict=True) if its == group]
            logs[group] = logs.get(group, 0.0) + math.log(median(of_group)) / len(timings)
    return all(log < -faster for log in logs.values()) or all(log > slower for log in logs.values())


def race_is_won(ratio: Interval) -> bool:
    """Whether a race with this ratio is won: the newcomer is faster, and by more than processes of
    one kernel differ by.
    """
    return ratio.high < 1 and ratio.value < WINNING_RATIO


def race_is_decided(ratio: Interval) -> bool:
    """Whether more groups would hardly change the result."""
    return race_is_won(ratio) or ratio.low > 1 or ratio.value > HOPELESS_RATIO


def race_scores(timing: RaceTiming) -> tuple[Interval, Interval]:
    """The time of newcomer and holder, each over the baseline's beside them."""
    newcomer, holder = (
        group_interval(
            paired_ratios(us, timing.baseline_us), timing.groups, sitting_share=SITTING_SHARE
        )
        for us in (timing.newcomer_us, timing.holder_us)
    )
    return newcomer, holder


def latency_interval(timing: CaseTiming, cold: bool = False) -> Interval:
    """The candidate's time per call in microseconds."""
    samples = _samples(timing, cold)
    return group_interval(
        samples.candidate_us, samples.groups, sitting_share=_sitting_share(samples)
    )


def _sitting_share(samples: Samples) -> float:
    """Of the mean of all sittings; none where an earlier version stored no groups."""
    return SITTING_SHARE / math.sqrt(samples.sittings) if samples.groups else 0.0


def exact(value: float) -> Interval:
    """The interval of a number without noise, such as a modelled time."""
    return Interval(value=value, low=value, high=value)


def geomean(intervals: Iterable[Interval]) -> Interval:
    """The geometric mean; relative half-widths add in quadrature, as for independent cases."""
    items = list(intervals)
    count = len(items)
    value = math.exp(sum(math.log(item.value) for item in items) / count)
    down = math.sqrt(sum(math.log(item.value / item.low) ** 2 for item in items)) / count
    up = math.sqrt(sum(math.log(item.high / item.value) ** 2 for item in items)) / count
    return Interval(value=value, low=value * math.exp(-down), high=value * math.exp(up))


def quotient(over: Interval, under: Interval) -> Interval:
    """`over` / `under`, both above 0; relative half-widths add in quadrature, as of independent
    measurements.
    """
    value = over.value / under.value
    down = math.hypot(math.log(over.value / over.low), math.log(under.high / under.value))
    up = math.hypot(math.log(over.high / over.value), math.log(under.value / under.low))
    return Interval(value=value, low=value * math.exp(-down), high=value * math.exp(up))


def _samples(timing: CaseTiming, cold: bool) -> Samples:
    if not cold:
        return timing.hot
    if timing.cold is None:
        raise ValueError(f"case {timing.case} has no cold samples")
    return timing.cold
