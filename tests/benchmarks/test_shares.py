"""Shares, and the statistics of what is measured twice."""

from __future__ import annotations

import math
from random import Random

import pytest

from benchmarks.shares import (
    agree,
    difference,
    figure_row,
    half_width,
    holds,
    mean_interval,
    over,
    ratio_row,
    share_row,
)
from evoengine.records import Interval


def around(value: float, half: float) -> Interval:
    return Interval(value=value, low=value - half, high=value + half)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (around(1.049, 0.04), True),  # hypot(0.03, 0.04) = 0.05
        (around(1.051, 0.04), False),
        (around(0.951, 0.04), True),
        (around(0.949, 0.04), False),
    ],
)
def test_two_measurements_agree_within_the_root_of_both_half_widths_squared(
    other: Interval, expected: bool
) -> None:
    assert agree(around(1.0, 0.03), other) is expected
    assert agree(other, around(1.0, 0.03)) is expected


def test_differences_and_half_widths_are_shares_of_the_value() -> None:
    assert difference(around(2.02, 0.1), around(1.98, 0.1)) == pytest.approx(0.02)
    assert half_width(Interval(value=2.0, low=1.98, high=2.04)) == pytest.approx(0.015)


@pytest.mark.parametrize(("hits", "kept"), [([True] * 19 + [False], True), ([True, False], False)])
def test_a_share_is_in_percent_and_held_against_its_goal(hits: list[bool], kept: bool) -> None:
    row = share_row("pairs", "all", hits, at_least=93)
    assert row["value %"] == 100 * sum(hits) / len(hits)
    assert (row["kept"], row["goal"]) == (kept, ">= 93")
    assert row["counted"] == f"{sum(hits)} of {len(hits)}"
    assert share_row("equal", "all", [False] * 20, at_most=5)["kept"] is True
    assert share_row("equal", "all", hits, at_most=5)["kept"] is False


def test_what_was_never_measured_keeps_no_goal_and_has_no_value() -> None:
    assert share_row("equal", "all", [], at_most=5)["kept"] is False
    row = figure_row("half-width", "all", None, at_most=1)
    assert (row["value %"], row["kept"]) == (None, False)
    assert share_row("equal", "one", [])["kept"] is None, "without a goal there is nothing to keep"


def test_a_ratio_is_kept_where_its_interval_holds_1() -> None:
    assert ratio_row("final", "one", around(1.01, 0.011))["kept"] is True
    assert ratio_row("final", "one", around(1.01, 0.009))["kept"] is False
    assert holds(around(1.01, 0.01), 1.0)


@pytest.mark.parametrize("count", [2, 5, 10, 20])
def test_the_interval_of_a_mean_holds_the_truth_in_95_of_100(count: int) -> None:
    luck = Random(7)  # noqa: S311 - not secret
    intervals = [
        mean_interval([3.0 * math.exp(luck.gauss(0, 0.01)) for _ in range(count)])
        for _ in range(4000)
    ]
    assert sum(holds(it, 3.0) for it in intervals) / len(intervals) == pytest.approx(
        0.95, abs=0.012
    )


def test_half_widths_of_a_ratio_add_in_quadrature() -> None:
    found = over(around(2.0, 0.06), around(1.0, 0.04))
    assert found.value == 2.0
    assert half_width(found) == pytest.approx(0.05, rel=0.01)
