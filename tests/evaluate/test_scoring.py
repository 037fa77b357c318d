"""What a report comes to."""

from __future__ import annotations

import pytest

from evoengine.evaluate.device.worker_protocol import HOLDER, NEWCOMER
from evoengine.evaluate.scoring import race_of, verdict_of
from evoengine.protocols import RaceReport, Report
from evoengine.records import CaseModel, Interval, LaunchModel, RaceResult, RaceTiming, Status
from tests.small import small_task


def model(case: str, *us: float) -> CaseModel:
    launches = tuple(
        LaunchModel(kernel="k", us=each, limiter=f"bound of {each}", bounds_us={}) for each in us
    )
    return CaseModel(case=case, target="l4", launches=launches)


def test_a_modelled_time_is_the_score_itself_without_an_interval() -> None:
    verdict = verdict_of(
        Report(status=Status.correct, modelled=(model("plain", 3.0, 5.0), model("flipped", 100.0))),
        small_task(),
        "fp32",
    )
    assert verdict.score == verdict.latency_us and verdict.score is not None
    assert verdict.score.value == verdict.score.low == verdict.score.high == pytest.approx(8.0)
    assert verdict.is_modelled and verdict.speedup is None


def test_a_case_is_limited_by_what_limits_its_longest_launch() -> None:
    assert model("plain", 3.0, 5.0, 1.0).limiter == "bound of 5.0"


def test_what_is_not_correct_has_no_score() -> None:
    verdict = verdict_of(
        Report(status=Status.fault, reason="race", detail="race\nstray"), small_task(), "fp32"
    )
    assert (verdict.score, verdict.latency_us, verdict.detail) == (None, None, "race\nstray")


SCORE = Interval(value=0.5, low=0.49, high=0.51)  # by which the holder has its place
NOISE = (0.997, 0.999, 1.0, 1.001, 1.003, 1.0)  # of a capture


def raced(newcomer: float, holder: float, case: str = "plain", noise: float = 1.0) -> RaceTiming:
    """Six groups of a race, in which both take so much of the baseline's 100 us."""
    factors = [1 + noise * (factor - 1) for factor in NOISE for _ in range(2)]
    return RaceTiming(
        case=case,
        baseline="torch.mul",
        newcomer_us=tuple(100 * newcomer * factor for factor in factors),
        holder_us=(100 * holder,) * 12,
        baseline_us=(100.0,) * 12,
        calls=(1,) * 12,
        groups=tuple(number // 2 for number in range(12)),
    )


@pytest.mark.parametrize(
    ("newcomer", "holder", "noise", "result", "reason"),
    [
        (0.45, 0.5, 1.0, RaceResult.won, "faster"),
        (0.55, 0.5, 1.0, RaceResult.lost, "slower"),
        (0.5, 0.5, 1.0, RaceResult.lost, "no difference was shown"),
        (0.45, 0.5, 60.0, RaceResult.lost, "no difference was shown"),
        (
            0.55,
            0.6,
            1.0,
            RaceResult.void,
            "the holder took 0.600 of the baseline's time, not 0.500",
        ),
        (0.3, 0.4, 1.0, RaceResult.void, "the holder took 0.400 of the baseline's time, not 0.500"),
    ],
)
def test_a_race_is_won_by_a_difference_that_is_shown_against_a_holder_that_takes_its_time(
    newcomer: float, holder: float, noise: float, result: RaceResult, reason: str
) -> None:
    report = RaceReport(
        status=Status.correct,
        timings=(raced(newcomer, holder, noise=noise),),
        phases_s={"race": 2.0},
    )
    race = race_of(report, SCORE)
    assert (race.result, race.reason) == (result, reason)
    assert race.ratio is not None and race.newcomer is not None and race.holder is not None
    assert race.ratio.value == pytest.approx(newcomer / holder, rel=0.02)
    assert race.holder.value == pytest.approx(holder)
    assert race.newcomer.value == pytest.approx(newcomer, rel=0.02)
    assert (race.timings, race.phases_s) == (report.timings, report.phases_s)


def test_a_race_over_several_cases_has_the_geometric_mean_of_their_ratios() -> None:
    timings = (raced(0.25, 0.5), raced(0.5, 0.5, "flipped"))
    race = race_of(RaceReport(status=Status.correct, timings=timings), SCORE)
    assert race.result is RaceResult.won and race.ratio is not None
    assert race.ratio.value == pytest.approx(0.5**0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("at_fault", "result", "reason"),
    [
        (NEWCOMER, RaceResult.lost, "the newcomer failed: crash: its process ended"),
        (HOLDER, RaceResult.won, "the holder failed: crash: its process ended"),
        ("", RaceResult.void, "crash: its process ended"),
    ],
)
def test_a_side_that_fails_has_lost_and_a_failure_of_neither_makes_the_race_void(
    at_fault: str, result: RaceResult, reason: str
) -> None:
    report = RaceReport(status=Status.crash, reason="its process ended", at_fault=at_fault)
    race = race_of(report, SCORE)
    assert (race.result, race.reason, race.ratio) == (result, reason, None)
