"""What a report comes to."""

from __future__ import annotations

import pytest

from evoengine.evaluate.scoring import verdict_of
from evoengine.protocols import Report
from evoengine.records import CaseModel, LaunchModel, Status
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
