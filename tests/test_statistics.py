from __future__ import annotations

import math
import statistics as python_statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evoengine.records import CaseTiming, Interval, RaceTiming, Samples
from evoengine.statistics import (
    ENOUGH_GROUPS,
    geomean,
    group_interval,
    latency_interval,
    median,
    median_interval,
    race_is_plain,
    ratio_interval,
)

times = st.floats(0.1, 1e5)
many = st.lists(times, min_size=1, max_size=80)


def timing(candidate: list[float], baseline: list[float], cold: bool = False) -> CaseTiming:
    samples = Samples(
        candidate_calls=1,
        baseline_calls=1,
        candidate_us=tuple(candidate),
        baseline_us=tuple(baseline),
    )
    return CaseTiming(case="mission", baseline="b", hot=samples, cold=samples if cold else None)


@given(many)
def test_median_is_that_of_the_standard_library(samples: list[float]) -> None:
    assert median(samples) == python_statistics.median(samples)


@given(many, st.randoms(use_true_random=False))
def test_interval_holds_the_median_and_is_made_of_samples(
    samples: list[float], random: Random
) -> None:
    interval = median_interval(samples)
    assert interval.low <= interval.value <= interval.high
    assert {interval.low, interval.high} <= set(samples)
    shuffled = random.sample(samples, len(samples))
    assert median_interval(shuffled) == interval


@given(many)
def test_interval_treats_fast_and_slow_alike(samples: list[float]) -> None:
    interval, mirrored = median_interval(samples), median_interval([-sample for sample in samples])
    assert (mirrored.low, mirrored.high) == (-interval.high, -interval.low)


@given(many, st.sampled_from([0.25, 2.0, 1024.0]))
def test_interval_scales_with_its_samples(samples: list[float], factor: float) -> None:
    interval, scaled = (
        median_interval(samples),
        median_interval([sample * factor for sample in samples]),
    )
    assert (scaled.low, scaled.value, scaled.high) == (
        interval.low * factor,
        interval.value * factor,
        interval.high * factor,
    )


@pytest.mark.parametrize("count", [*range(1, 60), 100, 400, 1001])
def test_interval_covers_the_median_in_95_of_100_cases_and_is_the_narrowest_that_does(
    count: int,
) -> None:
    interval = median_interval([float(index) for index in range(count)])
    outside = int(interval.low)
    assert interval.high == count - 1 - outside

    def coverage(left_out: int) -> float:
        return 1 - 2 * sum(math.comb(count, below) for below in range(left_out + 1)) / 2**count

    assert outside == 0 or coverage(outside) >= 0.95
    assert coverage(outside + 1) < 0.95
    if count < 9:
        assert outside == 0


def test_interval_of_100_samples_runs_from_the_40th_to_the_61st() -> None:
    """As in the tables, e.g. Le Boudec, Performance Evaluation of Computer and Communication
    Systems, table A.1.
    """
    interval = median_interval([float(index) for index in range(1, 101)])
    assert (interval.low, interval.value, interval.high) == (40, 50.5, 61)


@given(st.lists(st.tuples(times, times), min_size=1, max_size=40), st.floats(0.5, 2.0))
def test_ratio_cancels_what_slows_both_sides_of_a_pair(
    pairs: list[tuple[float, float]], drift: float
) -> None:
    calm = ratio_interval(timing([a for a, _ in pairs], [b for _, b in pairs]))
    slowed = ratio_interval(timing([a * drift for a, _ in pairs], [b * drift for _, b in pairs]))
    assert slowed.value == pytest.approx(calm.value)
    assert (slowed.low, slowed.high) == (pytest.approx(calm.low), pytest.approx(calm.high))


def test_hot_and_cold_samples_are_kept_apart() -> None:
    assert latency_interval(timing([2.0], [4.0])).value == 2.0
    assert ratio_interval(timing([2.0], [4.0], cold=True), cold=True).value == 0.5
    with pytest.raises(ValueError, match="case mission has no cold samples"):
        ratio_interval(timing([2.0], [4.0]), cold=True)


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    value = draw(st.floats(1e-3, 1e3))
    return Interval(
        value=value, low=value / draw(st.floats(1, 3)), high=value * draw(st.floats(1, 3))
    )


@given(st.lists(intervals(), min_size=1, max_size=6))
def test_geomean_lies_between_its_parts_and_narrows_with_their_number(
    items: list[Interval],
) -> None:
    mean = geomean(items)
    assert mean.low <= mean.value <= mean.high
    assert min(item.value for item in items) <= mean.value * (1 + 1e-9)
    assert mean.value <= max(item.value for item in items) * (1 + 1e-9)
    narrower = (1 + 1e-9) / math.sqrt(len(items))
    assert (
        math.log(mean.high / mean.value)
        <= max(math.log(item.high / item.value) for item in items) * narrower + 1e-12
    )
    assert (
        math.log(mean.value / mean.low)
        <= max(math.log(item.value / item.low) for item in items) * narrower + 1e-12
    )


@given(intervals())
def test_geomean_of_one_is_itself(item: Interval) -> None:
    mean = geomean([item])
    assert (mean.low, mean.value, mean.high) == (
        pytest.approx(item.low),
        pytest.approx(item.value),
        pytest.approx(item.high),
    )


def measured(
    random: Random, truth: float, groups: int, samples: int = 5
) -> tuple[list[float], list[int]]:
    """Ratios around `truth`, whose groups differ by 1 % and samples of one group by 2 %, with
    the group of each.
    """
    figures, numbers = [], []
    for group in range(groups):
        of_group = random.gauss(0.0, 0.01)
        for _ in range(samples):
            figures.append(truth * math.exp(of_group + random.gauss(0.0, 0.02)))
            numbers.append(group)
    return figures, numbers


@pytest.mark.parametrize("groups", [ENOUGH_GROUPS, 6, 12, 20])
@pytest.mark.parametrize(("strict", "least", "most"), [(False, 0.93, 0.97), (True, 0.983, 0.997)])
def test_an_interval_of_groups_holds_the_truth_as_often_as_it_says(
    groups: int, strict: bool, least: float, most: float
) -> None:
    random = Random(groups)  # noqa: S311 - the same measurements each time
    held = 0
    for _ in range(2000):
        interval = group_interval(*measured(random, 0.8, groups), strict=strict)
        held += interval.low <= 0.8 <= interval.high
    assert least <= held / 2000 <= most


def test_an_interval_that_takes_samples_of_a_capture_for_independent_is_too_narrow() -> None:
    random, held = Random(6), 0  # noqa: S311 - the same measurements each time
    for _ in range(2000):
        interval = median_interval(measured(random, 0.8, 6)[0])
        held += interval.low <= 0.8 <= interval.high
    assert held / 2000 < 0.93


def test_too_few_captures_or_none_give_the_interval_of_the_samples() -> None:
    random = Random(1)  # noqa: S311 - the same measurements each time
    figures, numbers = measured(random, 0.8, ENOUGH_GROUPS - 1)
    assert group_interval(figures, numbers) == median_interval(figures)
    assert group_interval(figures, ()) == median_interval(figures)


@given(st.lists(times, min_size=4, max_size=30), st.sampled_from([0.25, 2.0, 1024.0]))
def test_an_interval_of_groups_holds_its_figure_and_scales_with_it(
    figures: list[float], factor: float
) -> None:
    groups = [number % 4 for number in range(len(figures))]
    interval = group_interval(figures, groups)
    assert interval.low <= interval.value <= interval.high
    scaled = group_interval([one * factor for one in figures], groups)
    assert (scaled.low, scaled.value, scaled.high) == (
        pytest.approx(interval.low * factor),
        pytest.approx(interval.value * factor),
        pytest.approx(interval.high * factor),
    )
    strict = group_interval(figures, groups, strict=True)
    assert strict.value == interval.value
    assert strict.low <= interval.low and interval.high <= strict.high


def test_one_odd_sample_of_a_capture_moves_nothing() -> None:
    figures, groups = [1.0] * 25, [number // 5 for number in range(25)]
    assert group_interval([*figures[:-1], 50.0], groups) == group_interval(figures, groups)


def raced(*groups: tuple[float, float], case: str = "plain") -> RaceTiming:
    """A race of three rounds for each of `groups`: the times of newcomer and holder."""
    rounds = [(number, pair) for number, pair in enumerate(groups) for _ in range(3)]
    return RaceTiming(
        case=case,
        baseline="torch",
        newcomer_us=tuple(ours for _, (ours, _) in rounds),
        holder_us=tuple(theirs for _, (_, theirs) in rounds),
        baseline_us=(1.0,) * len(rounds),
        calls=(1,) * len(rounds),
        groups=tuple(number for number, _ in rounds),
    )


@pytest.mark.parametrize(
    ("timings", "plain"),
    [
        ([raced((9.0, 10.0), (9.2, 10.0))], True),
        ([raced((11.0, 10.0), (10.8, 10.0))], True),
        ([raced((10.2, 10.0), (10.3, 10.0))], True),  # to lose takes less than to win
        ([raced((9.8, 10.0), (9.7, 10.0))], False),
        ([raced((10.1, 10.0), (10.3, 10.0))], False),
        ([raced((9.0, 10.0), (9.8, 10.0))], False),  # one group hardly shows it
        ([raced((8.8, 10.0), (10.9, 10.0))], False),  # two directions
        # 0.8 and 1.1 on two cases are 0.94 together
        ([raced((8.0, 10.0), (8.0, 10.0)), raced((11.0, 10.0), (11.0, 10.0))], True),
        ([raced((9.0, 10.0), (9.0, 10.0)), raced((11.0, 10.0), (11.0, 10.0))], False),
    ],
)
def test_a_race_is_plain_where_each_group_shows_the_same(
    timings: list[RaceTiming], plain: bool
) -> None:
    assert race_is_plain(timings, faster=0.05, slower=0.015) is plain
