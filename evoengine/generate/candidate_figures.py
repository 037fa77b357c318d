"""The figures of one candidate, as prompts show them: times with their bounds, and errors; those of
its kernels are in kernel_figures. Cases that are not timed for the score are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from evoengine import statistics
from evoengine.candidate.arch import limits_of
from evoengine.candidate.kernel_file import Candidate
from evoengine.candidate.residency import residency
from evoengine.emulator.timing_model.combination import spent_on
from evoengine.generate.device_figures import target_of
from evoengine.generate.kernel_figures import bound_plan
from evoengine.protocols import Request
from evoengine.records import (
    CaseModel,
    CaseTiming,
    InputSetCheck,
    LaunchModel,
    Verdict,
)

SMALL_BOUND = 0.1  # of the largest bound of a launch; smaller ones are left out


def speedup(verdict: Verdict) -> str:
    """The speed-up against the fastest baseline, no more precise than it was measured."""
    if verdict.speedup is None:
        return ""
    return f"about {_rough(verdict.speedup)}x" if verdict.is_coarse else f"{verdict.speedup:.3f}x"


def brief_times(verdict: Verdict, cases: Sequence[str]) -> str:
    """The time of each of `cases` and its limiter, in a few words."""
    if verdict.modelled:
        return _brief_modelled([model for model in verdict.modelled if model.case in cases])
    if verdict.is_coarse:
        return ""
    return ", ".join(
        f"{timing.case} {statistics.latency_interval(timing).value:.2f} us"
        for timing in verdict.timings
        if timing.case in cases
    )


def _brief_modelled(models: Sequence[CaseModel]) -> str:
    """The limiter once where it is that of several cases."""
    if len(models) > 1 and len({model.limiter for model in models}) == 1:
        found = ", ".join(f"{model.case} {model.us:.2f}" for model in models)
        return f"{found} us (limited by {models[0].limiter})"
    return ", ".join(
        f"{model.case} {model.us:.2f} us (limited by {model.limiter})" for model in models
    )


def times(verdict: Verdict, parsed: Candidate | None, request: Request) -> Iterator[str]:
    """One line for each timed case: its time, and of a modelled one every bound that counts."""
    cases = request.task.objective.cases
    for model in verdict.modelled:
        if model.case in cases:
            yield _modelled(model, _rounds(model.case, verdict, parsed, request), request)
    for timing in verdict.timings:
        if timing.case in cases:
            yield _coarse(timing) if verdict.is_coarse else _measured(timing)


def _measured(timing: CaseTiming) -> str:
    latency, ratio = statistics.latency_interval(timing), statistics.ratio_interval(timing)
    line = (
        f"{timing.case}: {latency.value:.2f} us [{latency.low:.2f}, {latency.high:.2f}],"
        f" {1 / ratio.value:.3f}x of {timing.baseline}"
    )
    if not timing.cold:
        return line
    flushed_us = statistics.latency_interval(timing, cold=True).value
    return f"{line}; {flushed_us:.2f} us with a flushed L2"


def _coarse(timing: CaseTiming) -> str:
    """A time whose measurement stopped early, without an interval."""
    us = statistics.median(timing.hot.candidate_us)
    return (
        f"{timing.case}: about {_rough(us)} us; timing stopped early, because it cannot take a"
        " place"
    )


def _rough(value: float) -> str:
    """Two significant digits."""
    return f"{float(f'{value:.2g}'):g}"


def _modelled(model: CaseModel, rounds: Mapping[str, int], request: Request) -> str:
    """The modelled time of a case with its bounds, the largest first: they say what to work on."""
    lines = [
        f"{launch.us:.2f} us modelled, limited by {launch.limiter}; bounds alone, us:"
        f" {', '.join(_bounds(launch, rounds.get(launch.kernel), request))}"
        for launch in model.launches
    ]
    if len(lines) == 1:
        return f"{model.case}: {lines[0]}"
    named = (f"{launch.kernel}: {line}" for launch, line in zip(model.launches, lines, strict=True))
    return f"{model.case}: {model.us:.2f} us modelled. {'. '.join(named)}"


def _bounds(launch: LaunchModel, rounds: int | None, request: Request) -> Iterator[str]:
    bounds = sorted(launch.bounds_us.items(), key=lambda bound: -bound[1])
    for name, us in bounds:
        if us < SMALL_BOUND * bounds[0][1]:
            return
        spent = _latency_spent(launch, rounds, request) if name == "latency" else ""
        yield f"{name} {us:.3g}{spent}"


def _latency_spent(launch: LaunchModel, rounds: int | None, request: Request) -> str:
    """What the bound `latency` consists of: blocks one after the other, each so many clocks, and
    what these are spent on.
    """
    parts = []
    target = target_of(request.environment)
    if rounds is not None and target is not None:
        clocks = launch.bounds_us["latency"] * target.clocks_per_us
        of_block = max(0.0, (clocks - (rounds - 1) * target.latencies.block) / rounds)
        plural = "s" if rounds > 1 else ""
        parts.append(f"{rounds} round{plural} of blocks, each {of_block:,.0f} clocks")
    if shares := spent_on(launch.latency_shares):
        parts.append(shares)
    return f" ({': '.join(parts)})" if parts else ""


def _rounds(
    case: str, verdict: Verdict, parsed: Candidate | None, request: Request
) -> dict[str, int]:
    """Kernel -> how many blocks the busiest SM runs one after the other, where that is known."""
    limits = limits_of(request.environment)
    fitting = {item.kernel: residency(item) for item in verdict.resources}
    plan = bound_plan(parsed, request, case) if parsed else None
    found = {}
    for launch in plan.launches if plan else ():
        fit = fitting.get(launch.kernel)
        if fit is not None and fit.blocks:
            most_blocks = -(-math.prod(launch.grid) // limits.sm_count)
            found[launch.kernel] = -(-most_blocks // fit.blocks)
    return found


def accuracy_line(verdict: Verdict) -> str:
    """The error nearest to its limit, over the cases that are not hidden."""
    shown = [item for check in verdict.checks if not check.hidden for item in check.sets]
    if not shown:
        return ""
    worst = max(shown, key=_share_of_limits)
    rmse = f"relative RMSE {worst.rel_rmse:.2e} of {worst.limit_rel_rmse:.2e} allowed"
    if worst.worst_slice_output:
        rmse += f", {worst.slice_rel_rmse:.2e} of {worst.limit_slice_rel_rmse:.2e} in a row"
    several = len({item.worst_output for item in shown}) > 1
    output = f" in output {worst.worst_output}" if several else ""
    return f"largest error {worst.max_abs:.2e}{output}, {rmse} (inputs: {worst.distribution})"


def _share_of_limits(item: InputSetCheck) -> float:
    """The largest of the errors in units of its limit; in rows of version 0.1.0, of the relative
    RMSE of the whole and of the worst row.
    """
    if item.share_of_limit is not None:
        return item.share_of_limit
    pairs = (
        (item.rel_rmse, item.limit_rel_rmse),
        (item.slice_rel_rmse, item.limit_slice_rel_rmse),
    )
    return max(error / limit if limit else 0.0 for error, limit in pairs)
