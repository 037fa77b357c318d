"""From a device's report to a verdict with the score that candidates are ordered by."""

from __future__ import annotations

from collections.abc import Iterable

from evoengine.protocols import Report
from evoengine.records import CaseModel, CaseTiming, Interval, Status, Verdict
from evoengine.statistics import exact, geomean, latency_interval, ratio_interval
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
        gpu_state=report.gpu_state,
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
