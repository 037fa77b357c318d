"""The candidates so far, as prompts show them: their figures, and why others failed.

The reason of a verdict may be about a hidden case. Its author has left the case's sizes out
of it; as a second barrier it loses every word with a digit here, and its detail.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from evoengine import statistics
from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import CandidateError
from evoengine.generate import candidate_figures as figures
from evoengine.generate import failure_text, kernel_figures
from evoengine.generate.tuned_configurations import TunedConfigurations, tuned_configurations
from evoengine.protocols import Evaluated, Request
from evoengine.records import DiagnosisKind, Elite, Status, Verdict
from evoengine.task.schema import Task
from evoengine.task.small_cases import is_small

MAX_REASON = 300  # characters
MAX_DETAIL = 900  # characters: a compiler's first few errors
MAX_DIAGNOSIS_WORDS = 120
MAX_LESSONS = 8  # trials in a prompt
MAX_SUMMARY = 160  # characters: of a kernel without its source; models write up to 270

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
    brief: str  # its times and limiters in a few words
    times: tuple[str, ...]
    resources: tuple[str, ...]
    machine_code: tuple[str, ...]  # what the compiled kernels say without a run
    launches: tuple[str, ...]
    accuracy: str
    exceeds: tuple[str, ...]
    reason: str
    detail: str
    diagnoses: tuple[str, ...]  # of a wrong output, most telling first


@dataclass(frozen=True)
class TunedParent:
    """A parent, with the configurations of its source that were tried."""

    trial: int
    label: str
    configurations: TunedConfigurations


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
        summary=_shortened(parsed.plan.summary) if parsed else "",
        source=parsed.with_defaults() if parsed else evaluated.source,
        tunables=parsed.tunables if parsed else dict(outcome.tunables),
        speedup=figures.speedup(verdict),
        brief=figures.brief_times(verdict, request.task.objective.cases),
        times=tuple(figures.times(verdict, parsed, request)),
        resources=tuple(kernel_figures.resources_lines(verdict, parsed, request)),
        machine_code=tuple(kernel_figures.machine_code_lines(verdict, parsed, request)),
        launches=tuple(kernel_figures.launch_lines(parsed, request)) if parsed else (),
        accuracy=figures.accuracy_line(verdict),
        exceeds=verdict.target_exceeds,
        reason=reason,
        detail=detail,
        diagnoses=tuple(diagnosis_lines(verdict, request.task)),
    )


def elites(request: Request, tier: str) -> list[PromptContext]:
    """The elites of `tier` by place; those of all tiers where it has none."""
    held = [pair for pair in request.elites if pair[0].tier == tier] or request.elites
    return [prompt_context(evaluated, request, elite.place) for elite, evaluated in held]


def tuned(parent: Evaluated, request: Request) -> TunedParent | None:
    """What tuning has learned about the source of `parent`; None where nothing was tuned."""
    parsed = _parsed(parent)
    if parsed is None:
        return None
    found = tuned_configurations(parsed, request, partial(redacted, task=request.task))
    return TunedParent(parent.outcome.trial, parent.outcome.label, found) if found else None


def lessons(request: Request) -> list[PromptContext]:
    """The last trials without a place, newest first; of failures for the same reason the newest
    one, and of configurations of one source the fastest one. Correct ones of a source that holds a
    place say nothing more: the place is that of the best one.
    """
    held = {evaluated.outcome.trial for _, evaluated in request.elites}
    sources = {evaluated.outcome.source_digest for _, evaluated in request.elites}
    by_subject: dict[str, Evaluated] = {}
    for evaluated in reversed(request.recent):
        outcome = evaluated.outcome
        is_correct = evaluated.verdict.status is Status.correct
        if outcome.trial in held or (is_correct and outcome.source_digest in sources):
            continue
        reason = _reason_and_detail(evaluated.verdict, request.task)[0]
        subject = f"source {outcome.source_digest}" if is_correct else f"reason {reason}"
        other = by_subject.setdefault(subject, evaluated)
        if is_correct and _time_of(evaluated) < _time_of(other):
            by_subject[subject] = evaluated
    shown = list(by_subject.values())[:MAX_LESSONS]
    return [prompt_context(evaluated, request) for evaluated in shown]


def _time_of(evaluated: Evaluated) -> float:
    score = evaluated.outcome.score
    return math.inf if score is None else score.value


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
        if timing.case in request.task.objective.cases
    ]


def redacted(text: str, task: Task) -> str:
    """`text` without the names of hidden cases, and without words that hold a digit where it
    mentions one of them.
    """
    names = "|".join(re.escape(name) for name in task.hidden_cases)
    named = (
        re.sub(rf"(?:\bcase )?\b(?:{names})\b", "a hidden case", text)
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
    detail = failure_text.besides(verdict.status, verdict.reason, verdict.detail)
    return _cut(reason, MAX_REASON), _cut(redacted(detail, task), MAX_DETAIL)


def diagnosis_lines(verdict: Verdict, task: Task) -> Iterator[str]:
    """What forensics found out, whole sentences up to MAX_DIAGNOSIS_WORDS words together; the first
    one names a small case that the prompt does not have. A fault names its own, and where it ends
    the verdict it is the reason, which is not told twice.
    """
    if verdict.status is Status.fault:
        return
    left, found = MAX_DIAGNOSIS_WORDS, verdict.forensics
    small = found.case if found is not None and is_small(found.case) else ""
    for item in found.diagnoses if found is not None else ():
        line = redacted(" ".join(item.sentence.split()), task)
        if small and item.kind is not DiagnosisKind.fault:
            line, small = f"On {small}: {line}", ""
        left -= len(line.split())
        if left < 0:
            return
        yield line


def _shortened(summary: str) -> str:
    """`summary`, by whole words up to MAX_SUMMARY characters."""
    line = " ".join(summary.split())
    if len(line) <= MAX_SUMMARY:
        return line
    return line[: MAX_SUMMARY - 3].rpartition(" ")[0].rstrip(",;:") + " ..."


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
