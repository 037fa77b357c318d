"""From a device's report to a verdict with its score, and to the result of a race."""

from __future__ import annotations

from collections.abc import Iterable

from evoengine.evaluate.device.worker_protocol import HOLDER, NEWCOMER
from evoengine.evaluate.told_fault import findings_of
from evoengine.protocols import RaceReport, Report
from evoengine.records import (
    CaseModel,
    CaseTiming,
    Interval,
    Race,
    RaceResult,
    Status,
    Verdict,
)
from evoengine.statistics import (
    exact,
    geomean,
    latency_interval,
    race_is_won,
    race_ratio,
    race_scores,
    ratio_interval,
)
from evoengine.task.schema import Task


def verdict_of(report: Report, task: Task, tier: str) -> Verdict:
    """The verdict that follows from a device's report."""
    score, latency = _figures(report, task)
    return Verdict(
        status=report.status,
        reason=report.reason or "correct on every case",
        detail=report.detail,
        tier=tier,
        score=score,
        latency_us=latency,
        checks=report.checks,
        timings=report.timings,
        modelled=report.modelled,
        is_coarse=report.is_coarse,
        gpu_state=report.gpu_state,
        forensics=findings_of(report),
    )


def race_of(report: RaceReport, score: Interval) -> Race:
    """The race that follows from a device's report, against a holder with that `score`.

    A holder that fails has lost. One whose time lies wholly outside of the interval that it holds
    its place by makes the race void, because one of the two figures is wrong; but a holder that is
    slower than its score keeps nothing from a newcomer that beats the score as well.
    """
    if report.status is not Status.correct:
        result = {NEWCOMER: RaceResult.lost, HOLDER: RaceResult.won}.get(
            report.at_fault, RaceResult.void
        )
        who = f"the {report.at_fault} failed: " if report.at_fault else ""
        return Race(result=result, reason=f"{who}{report.status.value}: {report.reason}")
    ratio = geomean(map(race_ratio, report.timings))
    both = [race_scores(timing) for timing in report.timings]
    newcomer, holder = geomean(one for one, _ in both), geomean(other for _, other in both)
    beats_the_record = race_is_won(ratio) and newcomer.high < score.low
    if (holder.low > score.high and not beats_the_record) or holder.high < score.low:
        result = RaceResult.void
        reason = f"the holder took {holder.value:.3f} of the baseline's time, not {score.value:.3f}"
    elif race_is_won(ratio):
        result, reason = RaceResult.won, "faster"
    else:
        result = RaceResult.lost
        reason = "slower" if ratio.low > 1 else "no difference was shown"
    return Race(
        result=result,
        reason=reason,
        ratio=ratio,
        newcomer=newcomer,
        holder=holder,
        timings=report.timings,
        phases_s=report.phases_s,
    )


def _figures(report: Report, task: Task) -> tuple[Interval | None, Interval | None]:
    if report.status is not Status.correct:
        return None, None
    if report.modelled:
        modelled = modelled_us(task, report.modelled)
        return modelled, modelled
    return score_of(task, report.timings)


def score_of(task: Task, timings: tuple[CaseTiming, ...]) -> tuple[Interval, Interval]:
    """The objective's ratio to the baseline and its time per call, with their intervals."""
    cold = task.objective.cache == "cold"
    chosen = [timing for timing in timings if timing.case in task.objective.cases]
    score = geomean(ratio_interval(timing, cold) for timing in chosen)
    return score, geomean(latency_interval(timing, cold) for timing in chosen)


def modelled_us(task: Task, modelled: Iterable[CaseModel]) -> Interval:
    """The objective's modelled time: the geometric mean over its cases."""
    return geomean(exact(item.us) for item in modelled if item.case in task.objective.cases)
