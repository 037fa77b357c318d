"""Shares and ratios of repeated measurements as rows of a table, with the goals that they are held
against.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchmarks.table import Row
from evoengine.records import Interval

# Student's t, 97.5 %, for 2, 3, ... measurements; the last for all more.
_T_95 = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16)


def share_row(
    measured: str,
    subject: str,
    hits: Sequence[bool],
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    note: str = "",
    samples: Sequence[float] = (),
) -> Row:
    """How many of `hits` there are, in percent; goals are percentages, too.

    `samples` are the raw figures, for the JSON.
    """
    value = 100 * sum(hits) / len(hits) if hits else None
    return {
        **_valued(measured, subject, value, at_least, at_most),
        "counted": f"{sum(hits)} of {len(hits)}",
        "note": note,
        "samples": list(samples),
    }


def figure_row(
    measured: str,
    subject: str,
    percent: float | None,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    note: str = "",
) -> Row:
    """One figure in percent; None where nothing was measured."""
    return {**_valued(measured, subject, percent, at_least, at_most), "counted": "", "note": note}


def ratio_row(measured: str, subject: str, ratio: Interval, note: str = "") -> Row:
    """A ratio that should be 1, with its interval; kept where the interval holds 1."""
    return {
        "measured": measured,
        "subject": subject,
        "value %": 100 * ratio.value,
        "goal": "100 within",
        "kept": holds(ratio, 1.0),
        "counted": f"{100 * ratio.low:.2f} to {100 * ratio.high:.2f}",
        "note": note,
    }


def holds(interval: Interval, value: float) -> bool:
    """Whether `value` lies in the interval."""
    return interval.low <= value <= interval.high


def half_width(interval: Interval) -> float:
    """Half of the interval's width, as a share of its value."""
    return (interval.high - interval.low) / 2 / interval.value


def difference(one: Interval, other: Interval) -> float:
    """By how much `one` is larger, as a share of the mean of both."""
    return 2 * (one.value - other.value) / (one.value + other.value)


def agree(one: Interval, other: Interval) -> bool:
    """Whether two measurements of the same differ by no more than both half-widths together, which
    add in quadrature.
    """
    both = math.hypot(one.high - one.low, other.high - other.low) / 2
    return abs(one.value - other.value) <= both


def mean_interval(values: Sequence[float]) -> Interval:
    """The geometric mean of measurements, at least two, with its 95 % interval from their spread.

    It uses no interval of a single measurement: whether those are true is the question.
    """
    logs = [math.log(value) for value in values]
    mean = statistics.fmean(logs)
    t = _T_95[min(len(logs) - 2, len(_T_95) - 1)]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def over(one: Interval, other: Interval) -> Interval:
    """The ratio of two independent measurements; their relative half-widths add in quadrature."""
    value = one.value / other.value
    down = math.hypot(math.log(one.value / one.low), math.log(other.high / other.value))
    up = math.hypot(math.log(one.high / one.value), math.log(other.value / other.low))
    return Interval(value=value, low=value * math.exp(-down), high=value * math.exp(up))


def median_percent(shares: Sequence[float]) -> float | None:
    """The median of shares, in percent; None of none."""
    return 100 * statistics.median(shares) if shares else None


def _valued(
    measured: str,
    subject: str,
    value: float | None,
    at_least: float | None,
    at_most: float | None,
) -> Row:
    """The columns of a value in percent; without one, a goal is not kept."""
    if at_least is not None:
        goal, kept = f">= {at_least:g}", value is not None and value >= at_least
    elif at_most is not None:
        goal, kept = f"<= {at_most:g}", value is not None and value <= at_most
    else:
        goal, kept = "", None
    return {
        "measured": measured,
        "subject": subject,
        "value %": value,
        "goal": goal,
        "kept": kept,
    }
