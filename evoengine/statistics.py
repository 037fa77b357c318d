"""Figures from raw samples: medians with intervals, and the score of a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from evoengine.records import CaseTiming, Interval

Z_95 = 1.96  # standard normal quantile of a two-sided 95 % interval


def median(samples: Sequence[float]) -> float:
    """The middle value; the mean of the two middle ones for an even count."""
    ordered = sorted(samples)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(samples: Sequence[float]) -> Interval:
    """The median with its distribution-free 95 % interval (order statistics, normal approximation).

    Source: Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2. With fewer
    than 6 samples the interval is the whole range.
    """
    ordered = sorted(samples)
    count = len(ordered)
    half = Z_95 * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - half))
    high = min(count - 1, math.ceil(count / 2 + half))
    return Interval(value=median(ordered), low=ordered[low], high=ordered[high])


def ratio_interval(timing: CaseTiming, cold: bool = False) -> Interval:
    """Candidate time over baseline time, pair by pair, so that clock drift cancels."""
    samples = _samples(timing, cold)
    pairs = zip(samples.candidate_us, samples.baseline_us, strict=True)
    return median_interval([candidate / baseline for candidate, baseline in pairs])


def latency_interval(timing: CaseTiming, cold: bool = False) -> Interval:
    """The candidate's time per call in microseconds."""
    return median_interval(_samples(timing, cold).candidate_us)


def geomean(intervals: Iterable[Interval]) -> Interval:
    """The geometric mean; relative half-widths add in quadrature, as for independent cases."""
    items = list(intervals)
    count = len(items)
    value = math.exp(sum(math.log(item.value) for item in items) / count)
    down = math.sqrt(sum(math.log(item.value / item.low) ** 2 for item in items)) / count
    up = math.sqrt(sum(math.log(item.high / item.value) ** 2 for item in items)) / count
    return Interval(value=value, low=value * math.exp(-down), high=value * math.exp(up))


def _samples(timing: CaseTiming, cold: bool):  # type: ignore[no-untyped-def]  # Samples; kept local to the two readers above
    if not cold:
        return timing.hot
    if timing.cold is None:
        raise ValueError(f"case {timing.case} has no cold samples")
    return timing.cold
