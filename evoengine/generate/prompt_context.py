"""The candidates so far, as prompts show them: their figures, and why others failed.

The reason of a verdict may be about a hidden case. Its author has left the case's sizes out
of it; as a second barrier it loses every word with a digit here, and its detail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evoengine import statistics
from evoengine.candidate import binding, kernel_file, machine_facts
from evoengine.candidate.arch import limits_of
from evoengine.candidate.binding import CasePlan
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError
from evoengine.protocols import Evaluated, Request
from evoengine.records import (
    CaseModel,
    CaseTiming,
    Elite,
    InputSetCheck,
    KernelResources,
    Status,
    Verdict,
)
from evoengine.task.schema import Task

MAX_REASON = 300  # characters
MAX_DETAIL = 900  # characters: a compiler's first few errors
MAX_DIAGNOSIS_WORDS = 120
MAX_BOUNDS = 4  # of a modelled time
MAX_KERNELS = 3  # whose machine code is described
MAX_LESSONS = 8  # trials in a prompt

_WITH_DIGIT = re.compile(r"[^\s,;:()\[\]{}'\"]*\d[^\s,;:()\[\]{}'\"]*")


@dataclass(frozen=True)
class PromptContext:
    """One candidate as a prompt shows it; texts are "" and lists empty where nothing is known."""

    trial: int
    place: int | None  # in its tier
    tier: str
    label: str
    operator: str
    status: str
    summary: str
    source: str  # with the chosen tunables first
    tunables: dict[str, int]
    speedup: str  # e.g. "1.234x", or "about 0.52x" where timing stopped early
    times: tuple[str, ...]
    resources: tuple[str, ...]
    machine_code: tuple[str, ...]  # what the compiled kernels say without a run
    launches: tuple[str, ...]
    accuracy: str
    exceeds: tuple[str, ...]
    reason: str
    detail: str
    diagnoses: tuple[str, ...]  # of a wrong output, most telling first


def prompt_context(
    evaluated: Evaluated, request: Request, place: int | None = None
) -> PromptContext:
    """`evaluated` as a prompt may show it."""
    outcome, verdict = evaluated.outcome, evaluated.verdict
    parsed = _parsed(evaluated)
    reason, detail = _reason_and_detail(verdict, request.task)
    return PromptContext(
        trial=outcome.trial,
        place=place,
        tier=verdict.tier or outcome.tier,
        label=outcome.label,
        operator=outcome.operator,
        status=verdict.status.value,
        summary=parsed.plan.summary if parsed else "",
        source=parsed.with_defaults() if parsed else evaluated.source,
        tunables=parsed.tunables if parsed else dict(outcome.tunables),
        speedup=_speedup(verdict),
        times=tuple(_times(verdict)),
        resources=tuple(_resources(item) for item in verdict.resources),
        machine_code=tuple(_machine_code(verdict.resources)),
        launches=tuple(_launches(parsed, request)) if parsed else (),
        accuracy=_accuracy(verdict),
        exceeds=verdict.target_exceeds,
        reason=reason,
        detail=detail,
        diagnoses=tuple(diagnosis_lines(verdict, request.task)),
    )


def elites(request: Request) -> list[PromptContext]:
    """The elites, by tier and place."""
    return [prompt_context(evaluated, request, elite.place) for elite, evaluated in request.elites]


def lessons(request: Request) -> list[PromptContext]:
    """The last trials without a place, newest first; of failures for the same reason, the newest
    one.
    """
    held = {evaluated.outcome.trial for _, evaluated in request.elites}
    by_reason: dict[str, PromptContext] = {}
    for evaluated in reversed(request.recent):
        if evaluated.outcome.trial in held:
            continue
        item = prompt_context(evaluated, request)
        by_reason.setdefault(
            item.reason if item.status != Status.correct else f"trial {item.trial}", item
        )
    return list(by_reason.values())[:MAX_LESSONS]


def best(request: Request, tier: str) -> Evaluated | None:
    """A correct kernel as an example: an elite of `tier`, else any elite, else a correct starting
    kernel, else None.
    """
    by_rank: list[tuple[Elite, Evaluated]] = sorted(
        request.elites, key=lambda pair: (pair[0].tier != tier, pair[0].place)
    )
    correct = [
        evaluated for evaluated in request.seeds if evaluated.verdict.status == Status.correct
    ]
    return by_rank[0][1] if by_rank else correct[0] if correct else None


def baseline_times(request: Request) -> list[str]:
    """The times of the baselines, as measured beside the best elite."""
    return [
        f"{timing.case}: {timing.baseline} takes {statistics.median(timing.hot.baseline_us):.2f} us"
        for _, evaluated in request.elites[:1]
        for timing in evaluated.verdict.timings
    ]


def redacted(text: str, task: Task) -> str:
    """`text` without the names of hidden cases, and without words that hold a digit where it
    mentions one of them.
    """
    names = "|".join(re.escape(name) for name in task.hidden_cases)
    named = (
        re.sub(rf"(?:\b(?:in )?case )?\b(?:{names})\b", "a hidden case", text)
        if names and _mentions(text, names)
        else text
    )
    return _WITH_DIGIT.sub("#", named) if "hidden case" in named else named


def _mentions(text: str, names: str) -> bool:
    """Whether one of `names` follows 'case' or begins a line: elsewhere it may be a plain word."""
    return bool(re.search(rf"\bcase\s+['\"]?(?:{names})\b|^(?:{names})\b", text, re.MULTILINE))


def _reason_and_detail(verdict: Verdict, task: Task) -> tuple[str, str]:
    if verdict.status == Status.correct:
        return "", ""
    reason = redacted(verdict.reason, task)
    if reason != verdict.reason or "hidden case" in reason:
        return _cut(reason, MAX_REASON), ""
    return _cut(reason, MAX_REASON), _cut(redacted(verdict.detail, task), MAX_DETAIL)


def diagnosis_lines(verdict: Verdict, task: Task) -> Iterator[str]:
    """What forensics found out, whole sentences up to MAX_DIAGNOSIS_WORDS words together."""
    left = MAX_DIAGNOSIS_WORDS
    for item in verdict.forensics.diagnoses if verdict.forensics is not None else ():
        line = redacted(" ".join(item.sentence.split()), task)
        left -= len(line.split())
        if left < 0:
            return
        yield line


def _cut(text: str, length: int) -> str:
    """The beginning of `text`, by whole lines where that keeps at least half."""
    if len(text) <= length:
        return text
    kept = text[:length]
    line_end = kept.rfind("\n")
    return (kept[:line_end] if line_end > length // 2 else kept) + "\n[cut]"


def _parsed(evaluated: Evaluated) -> Candidate | None:
    try:
        return kernel_file.parse(evaluated.source).tuned(evaluated.outcome.tunables)
    except CandidateError:
        return None


def _speedup(verdict: Verdict) -> str:
    """The speed-up against the fastest baseline, no more precise than it was measured."""
    if verdict.speedup is None:
        return ""
    return f"about {_rough(verdict.speedup)}x" if verdict.is_coarse else f"{verdict.speedup:.3f}x"


def _times(verdict: Verdict) -> list[str]:
    if verdict.is_coarse:
        return [_coarse(timing) for timing in verdict.timings]
    lines = [_modelled(model) for model in verdict.modelled]
    for timing in verdict.timings:
        latency, ratio = statistics.latency_interval(timing), statistics.ratio_interval(timing)
        line = (
            f"{timing.case}: {latency.value:.2f} us [{latency.low:.2f}, {latency.high:.2f}],"
            f" {1 / ratio.value:.3f}x of {timing.baseline}"
        )
        if timing.cold:
            line += (
                f"; {statistics.latency_interval(timing, cold=True).value:.2f} us with a flushed L2"
            )
        lines.append(line)
    return lines


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


def _modelled(model: CaseModel) -> str:
    """The modelled time of a case with its bounds, the largest first: they say what to work on."""
    lines = []
    for launch in model.launches:
        bounds = sorted(launch.bounds_us.items(), key=lambda bound: -bound[1])[:MAX_BOUNDS]
        alone = ", ".join(f"{name} {us:.3g}" for name, us in bounds)
        lines.append(
            f"{launch.kernel} {launch.us:.2f} us, limited by {launch.limiter} (alone: {alone})"
        )
    return f"{model.case}: {model.us:.2f} us modelled, not measured: {'; '.join(lines)}"


def _resources(item: KernelResources) -> str:
    shared = item.static_shared_bytes + item.dynamic_shared_bytes
    spills = (
        f"spills {item.spill_store_bytes} B stored and {item.spill_load_bytes} B loaded per thread"
    )
    words = spills if item.spill_store_bytes or item.spill_load_bytes else "no spills"
    return f"{item.kernel} ({item.arch}): {item.registers} registers, {shared} B shared, {words}"


def _machine_code(resources: Sequence[KernelResources]) -> Iterator[str]:
    """One paragraph for each of the first kernels, as compiled for the device."""
    here = [item for item in resources if item.arch == resources[0].arch]
    for item in here[:MAX_KERNELS]:
        if found := machine_facts.facts(item):
            yield f"{item.kernel} ({item.arch}): {'. '.join(found)}."


def _launches(parsed: Candidate, request: Request) -> list[str]:
    """The launches of the timed cases, with how they fill the device."""
    lines = []
    limits = limits_of(request.environment)
    for case in request.task.objective.cases:
        try:
            bound = binding.bind(parsed, request.task, case, limits)
        except CandidateError:
            continue
        lines += [f"{case}: {words}" for words in _launch_words(bound, limits.sm_count)]
    return lines


def _launch_words(bound: CasePlan, sm_count: int) -> list[str]:
    lines = []
    for launch in bound.launches:
        grid, block = (
            "x".join(str(extent) for extent in extents) for extents in (launch.grid, launch.block)
        )
        blocks = math.prod(launch.grid)
        filling = f"grid {grid} = {blocks} blocks ({blocks / sm_count:.2f} per SM)"
        lines.append(
            f"{launch.kernel}: {filling}, block {block}, {launch.shared_bytes} B dynamic shared"
        )
    return lines


def _accuracy(verdict: Verdict) -> str:
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
