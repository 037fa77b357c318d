"""Turns records into rows; every number that is shown is computed here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from evoengine.candidate import machine_facts
from evoengine.protocols import RaceRow
from evoengine.records import (
    CaseCheck,
    CaseModel,
    CaseTiming,
    Elite,
    Interval,
    KernelActivity,
    KernelResources,
    Outcome,
    Proposal,
    Usage,
    Verdict,
)
from evoengine.report.elite_evidence import NO_EVIDENCE, EliteEvidence
from evoengine.report.rows import (
    CaseRow,
    EliteRow,
    RaceFigures,
    ResourceRow,
    TrialDetail,
    TrialRow,
    VerdictFigures,
)
from evoengine.report.run_model import cost_is_known
from evoengine.report.search_marks import NO_MARKS, SearchMarks
from evoengine.statistics import latency_interval, median_interval, ratio_interval
from evoengine.task.instruction_formats import in_order
from evoengine.task.schema import Target, Tier

# returns the verdict that counts for a trial; None if there is none
VerdictLookup = Callable[[int], Verdict | None]
# returns the tunables of a trial that differ from its kernel's defaults
ChangedTunables = Callable[[Outcome], dict[str, int]]


def speedup_of(score: Interval | None) -> Interval | None:
    """The speed-up against the baseline; None without a usable score."""
    if score is None or not score.low > 0:
        return None
    return Interval(value=1 / score.value, low=1 / score.high, high=1 / score.low)


def speedup_of_verdict(verdict: Verdict) -> Interval | None:
    """The speed-up of a verdict; None if its score is a modelled time."""
    return None if verdict.is_modelled else speedup_of(verdict.score)


class FirstCorrectTimes:
    """The modelled time of each tier's first correct trial, which later trials are compared
    with.
    """

    def __init__(self, modelled: bool) -> None:
        """`modelled`: whether the run's times are modelled; measured times have a baseline
        instead.
        """
        self.modelled = modelled
        self._us: dict[str, float] = {}

    def add(self, outcome: Outcome) -> None:
        """Adds a settled trial; call it in the order of trial numbers."""
        if outcome.latency_us:
            self._us.setdefault(outcome.tier, outcome.latency_us.value)

    def ratio(self, outcome: Outcome) -> float | None:
        """First modelled time / modelled time of `outcome`; None if either is missing."""
        first = self._us.get(outcome.tier)
        return (
            first / outcome.latency_us.value
            if self.modelled and first and outcome.latency_us
            else None
        )


NO_MODELLED_TIMES = FirstCorrectTimes(modelled=False)


def all_tunables(outcome: Outcome) -> dict[str, int]:
    """All tunables: a ChangedTunables for when the defaults are unknown."""
    return outcome.tunables


def elite_row(
    elite: Elite,
    evidence: EliteEvidence = NO_EVIDENCE,
    firsts: FirstCorrectTimes = NO_MODELLED_TIMES,
    changed_of: ChangedTunables = all_tunables,
    tiers: Mapping[str, Tier] = MappingProxyType({}),
) -> EliteRow:
    """The row of an elite; the resources of its machine code are those of the verification, the
    remarks on the GPU those of the verdict whose times are shown.

    Without the task's `tiers`, it is not compared with stricter ones.
    """
    outcome, verdict, final = elite.outcome, evidence.selected, evidence.final
    shown = evidence.shown
    score, latency_us = evidence.figures(outcome)
    here = on_device(verdict) if verdict else []
    return EliteRow(
        tier=elite.tier,
        place=elite.place,
        trial=outcome.trial,
        name=display_name(outcome.label, outcome.trial),
        operator=outcome.operator,
        tunables=outcome.tunables,
        changed=changed_of(outcome),
        speedup=None if firsts.modelled else speedup_of(score),
        latency_us=latency_us,
        selected_speedup=None if firsts.modelled else speedup_of(outcome.score),
        selected_latency_us=outcome.latency_us,
        final_status=final.status if final else None,
        final_reason=final.reason if final else "",
        awaits_final=evidence.awaits_final,
        modelled=firsts.modelled,
        vs_first=firsts.ratio(outcome),
        limiter=verdict.modelled[0].limiter if verdict and verdict.modelled else "",
        registers=max((item.registers for item in here), default=None),
        shared_bytes=max(
            (item.static_shared_bytes + item.dynamic_shared_bytes for item in here), default=None
        ),
        keeps_target=not verdict.target_exceeds if verdict else None,
        formats=in_order({name for item in here for name in item.formats}),
        exact_as=_stricter_tier(verdict, elite.tier, tiers) if verdict else "",
        gpu_remarks=shown.gpu_state.remarks if shown and shown.gpu_state else (),
    )


def _stricter_tier(verdict: Verdict, own: str, tiers: Mapping[str, Tier]) -> str:
    """The strictest tier below `own` whose limit every relative RMSE keeps; "" if there is none."""
    errors = [item.rel_rmse for check in verdict.checks for item in check.sets]
    if not errors or own not in tiers:
        return ""
    kept = {
        name: tier.rel_rmse
        for name, tier in tiers.items()
        if max(errors) <= tier.rel_rmse < tiers[own].rel_rmse
    }
    return min(kept, key=lambda name: kept[name], default="")


def trial_row(
    outcome: Outcome,
    place: int | None = None,
    firsts: FirstCorrectTimes = NO_MODELLED_TIMES,
    changed_of: ChangedTunables = all_tunables,
    marks: SearchMarks = NO_MARKS,
) -> TrialRow:
    """The row of a settled trial; `place` is the place that it holds now."""
    return TrialRow(
        trial=outcome.trial,
        operator=outcome.operator,
        parents=outcome.parents,
        name=display_name(outcome.label, outcome.trial),
        tunables=outcome.tunables,
        changed=changed_of(outcome),
        status=outcome.status,
        tier=outcome.tier,
        speedup=None if firsts.modelled else speedup_of(outcome.score),
        latency_us=outcome.latency_us,
        modelled=firsts.modelled,
        vs_first=firsts.ratio(outcome),
        is_coarse=marks.is_coarse,
        lost_to=marks.lost_to,
        place=place,
        reason=outcome.reason,
    )


def display_name(label: str, trial: int) -> str:
    """The name that is shown for a trial: its label, else `trial N`."""
    return label or f"trial {trial}"


def on_device(verdict: Verdict) -> list[KernelResources]:
    """The resources of the kernels as compiled for the device that judged them."""
    arch = verdict.environment.arch if verdict.environment else None
    return [item for item in verdict.resources if arch is None or item.arch == arch]


def verdict_row(
    verdict: Verdict, name: str, tunables: dict[str, int], target: Target | None
) -> VerdictFigures:
    """One verdict with the numbers of every case."""
    return VerdictFigures(
        name=name,
        status=verdict.status,
        reason=verdict.reason,
        detail=verdict.detail,
        tier=verdict.tier,
        tunables=tunables,
        speedup=speedup_of_verdict(verdict),
        latency_us=verdict.latency_us,
        modelled=verdict.is_modelled,
        is_coarse=verdict.is_coarse,
        activity_problem=verdict.activity_problem,
        checked_problem=verdict.checked_problem,
        cases=case_rows(verdict),
        resources=resource_rows(verdict.resources, target),
        target_exceeds=verdict.target_exceeds,
        code_digest=verdict.code_digest,
        phases_s=verdict.phases_s,
        environment=verdict.environment,
        gpu_state=verdict.gpu_state,
        forensics=verdict.forensics,
    )


def case_rows(verdict: Verdict) -> tuple[CaseRow, ...]:
    """One row for each case that was checked or timed; a failing check of a case replaces a
    passing one.
    """
    checks: dict[str, CaseCheck] = {}
    for check in verdict.checks:
        if check.case not in checks or not check.ok:
            checks[check.case] = check
    timings = {timing.case: timing for timing in verdict.timings}
    models = {model.case: model for model in verdict.modelled}
    activities = {activity.case: activity for activity in verdict.activity}
    return tuple(
        _case_row(case, checks.get(case), timings.get(case), models.get(case), activities.get(case))
        for case in {**checks, **timings, **models}
    )


def _hot_calls(timing: CaseTiming | None) -> tuple[int, ...]:
    """The calls of each hot sample; version 0.1.0 took the same number for all of one side."""
    if timing is None:
        return ()
    return timing.hot.calls or (timing.hot.candidate_calls,)


def _case_row(
    case: str,
    check: CaseCheck | None,
    timing: CaseTiming | None,
    model: CaseModel | None,
    activity: KernelActivity | None,
) -> CaseRow:
    worst = check.worst if check and check.sets else None
    cold = timing.cold if timing else None
    checked = check.checked if check else None
    return CaseRow(
        case=case,
        hidden=check.hidden if check else False,
        ok=check.ok if check else None,
        input_sets=len(check.sets) if check else 0,
        failing_sets=sum(not item.ok for item in check.sets) if check else 0,
        worst_set=f"{worst.distribution} set {worst.seed}" if worst else "",
        worst_at=worst.worst_place if worst else "",
        max_abs=worst.max_abs if worst else None,
        limit_abs=worst.limit_abs if worst else None,
        rel_rmse=worst.rel_rmse if worst else None,
        limit_rel_rmse=worst.limit_rel_rmse if worst else None,
        failing_share=worst.failing_share if worst else None,
        nan_count=worst.nan_count if worst else 0,
        baseline=timing.baseline if timing else "",
        hot_us=latency_interval(timing) if timing else None,
        hot_baseline_us=median_interval(timing.hot.baseline_us) if timing else None,
        hot_speedup=speedup_of(ratio_interval(timing)) if timing else None,
        cold_us=latency_interval(timing, cold=True) if timing and cold else None,
        cold_baseline_us=median_interval(cold.baseline_us) if cold else None,
        cold_speedup=speedup_of(ratio_interval(timing, cold=True)) if timing and cold else None,
        least_calls=min(_hot_calls(timing), default=0),
        most_calls=max(_hot_calls(timing), default=0),
        call_bytes=timing.call_bytes if timing else 0,
        activity_us=activity.candidate_us if activity else None,
        baseline_activity_us=activity.baseline_us if activity else None,
        activity_launches=activity.candidate_launches if activity else (),
        modelled_us=model.us if model else None,
        limiter=model.limiter if model else "",
        bounds_us=_bounds_us(model) if model else {},
        latency_shares=_latency_shares(model) if model else {},
        checked_for=checked.checks if checked else (),
        checked_blocks=checked.blocks if checked else 0,
        wavefronts_per_request=(
            checked.shared_wavefronts / checked.shared_requests
            if checked and checked.shared_requests
            else None
        ),
        sectors_per_request=(
            checked.global_sectors / checked.global_requests
            if checked and checked.global_requests
            else None
        ),
        total_blocks=checked.total_blocks if checked else 0,
        findings=checked.findings if checked else (),
    )


def _bounds_us(model: CaseModel) -> dict[str, float]:
    """Each bound summed over all launches, the largest first."""
    return _summed(launch.bounds_us for launch in model.launches)


def _latency_shares(model: CaseModel) -> dict[str, float]:
    """The shares of each launch's latency, weighted by it, the largest first."""
    spent_us = _summed(
        {
            name: share * launch.bounds_us.get("latency", 0.0)
            for name, share in launch.latency_shares.items()
        }
        for launch in model.launches
    )
    whole_us = sum(spent_us.values())
    return {name: us / whole_us for name, us in spent_us.items()} if whole_us else {}


def _summed(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sums by name, the largest first."""
    sums: dict[str, float] = {}
    for part in parts:
        for name, us in part.items():
            sums[name] = sums.get(name, 0.0) + us
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def resource_rows(
    found: Iterable[KernelResources], target: Target | None
) -> tuple[ResourceRow, ...]:
    """The resources of each kernel, with the target's limits if it was compiled for the target."""
    rows = []
    for item in found:
        limits = target if target and target.arch == item.arch else None
        row = ResourceRow(
            **dict(item),
            facts=machine_facts.facts(item),
            target_registers=limits.registers if limits else None,
            target_shared_bytes=limits.shared if limits else None,
        )
        if row not in rows:
            rows.append(row)
    return tuple(rows)


def race_figures(row: RaceRow) -> RaceFigures:
    """One race as it is shown."""
    race = row.race
    return RaceFigures(
        holder_trial=row.holder,
        result=race.result,
        reason=race.reason,
        ratio=race.ratio,
        speedup=speedup_of(race.newcomer),
        holder_speedup=speedup_of(race.holder),
        began=row.began,
        ended=row.ended,
    )


def trial_detail(
    row: TrialRow,
    proposal: Proposal,
    replies: Iterable[Usage],
    first: VerdictFigures,
    verified: VerdictFigures | None,
    config: Mapping[str, Any],
    times: tuple[str, str] = ("", ""),
    races: Iterable[RaceRow] = (),
    final: VerdictFigures | None = None,
    awaits_final: bool = False,
) -> TrialDetail:
    """One trial in full, with its first verdict, its verification, its races and its measurement at
    the end of the run.

    `config` holds the settings of its run; `times` are when the trial began and ended.
    """
    costs = list(replies)
    return TrialDetail(
        row=row,
        problem=proposal.problem,
        insight=proposal.insight,
        replies=len(costs),
        usage=sum(costs, Usage()),
        began=times[0],
        ended=times[1],
        cost_known=cost_is_known(config, sum(costs, Usage())),
        verdict=verified or first,
        first=first if verified else None,
        races=tuple(race_figures(race) for race in races),
        final=final,
        awaits_final=awaits_final,
        source=proposal.source,
    )
