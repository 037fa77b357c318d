"""Statistics of raw samples: medians with intervals, and their geometric mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache

from evoengine.records import CaseTiming, Interval, Samples

OUTSIDE_PERMILLE = 25  # outside a 95 % interval, on each side


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


def ratio_interval(timing: CaseTiming, cold: bool = False) -> Interval:
    """Candidate time / baseline time, pair by pair, so that clock drift cancels."""
    samples = _samples(timing, cold)
    pairs = zip(samples.candidate_us, samples.baseline_us, strict=True)
    return median_interval([candidate / baseline for candidate, baseline in pairs])


def latency_interval(timing: CaseTiming, cold: bool = False) -> Interval:
    """The candidate's time per call in microseconds."""
    return median_interval(_samples(timing, cold).candidate_us)


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


def _samples(timing: CaseTiming, cold: bool) -> Samples:
    if not cold:
        return timing.hot
    if timing.cold is None:
        raise ValueError(f"case {timing.case} has no cold samples")
    return timing.cold
