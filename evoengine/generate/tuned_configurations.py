"""What tuning has learned about one source, in a few lines for the next prompt about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from evoengine.candidate.kernel_file import Candidate
from evoengine.protocols import Request
from evoengine.records import Outcome, Status

# with the sentence above them ten lines
MOST_FAST, MOST_FAILED = 5, 3  # and the slowest one
MAX_WHY = 100  # characters of the reason of a failure


@dataclass(frozen=True)
class TunedConfigurations:
    """The configurations of a source that were tried: how many, how many of them are correct, and
    a line for each that says most.
    """

    tried: int
    correct: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class _Tried:
    """One configuration with its outcome; `values` are those that not all have in common."""

    values: str
    outcome: Outcome


def tuned_configurations(
    candidate: Candidate, request: Request, redact: Callable[[str], str]
) -> TunedConfigurations | None:
    """The configurations of the source of `candidate` that are settled at `request`; None where
    there is no more than one. `redact` takes what a model must not read out of a reason.
    """
    tried = _tried(candidate, request.tried(candidate.source_digest))
    if len(tried) < 2:
        return None
    unit = " us modelled" if request.environment.is_modelled else " us"
    correct = [item for item in tried if item.outcome.status is Status.correct]
    failed = [item for item in tried if item.outcome.status is not Status.correct]
    ranked = sorted((item for item in correct if item.outcome.score), key=_score)
    lines = [*_correct_lines(ranked, unit), *_failed_lines(failed, redact)]
    return TunedConfigurations(len(tried), len(correct), tuple(lines))


def _tried(candidate: Candidate, outcomes: Sequence[Outcome]) -> list[_Tried]:
    """Every configuration once, with its last outcome, oldest first; one that was refused, because
    the kernel was sent again, says nothing of a configuration that was judged.
    """
    defaults = {name: values[0] for name, values in candidate.plan.tunables.items()}
    last: dict[tuple[tuple[str, int], ...], Outcome] = {}
    for outcome in outcomes:
        configuration = tuple({**defaults, **outcome.tunables}.items())
        if not outcome.tunables.keys() <= defaults.keys():
            continue
        if outcome.status is not Status.rejected or configuration not in last:
            last[configuration] = outcome
    values_of: dict[str, set[int]] = {}
    for configuration in last:
        for name, value in configuration:
            values_of.setdefault(name, set()).add(value)
    return [
        _Tried(
            ", ".join(f"{name}={value}" for name, value in items if len(values_of[name]) > 1),
            outcome,
        )
        for items, outcome in last.items()
    ]


def _correct_lines(ranked: Sequence[_Tried], unit: str) -> Iterator[str]:
    """The fastest ones, best first, and the slowest one."""
    for place, item in enumerate(ranked[:MOST_FAST]):
        yield f"{item.values}: {_time(item, unit)}{', the best' if place == 0 else ''}"
    if len(ranked) > MOST_FAST:
        yield f"{ranked[-1].values}: {_time(ranked[-1], unit)}, the slowest"


def _failed_lines(failed: Sequence[_Tried], redact: Callable[[str], str]) -> Iterator[str]:
    """The last failure for each reason, newest first."""
    by_reason: dict[str, _Tried] = {}
    for item in reversed(failed):
        why = " ".join(redact(item.outcome.reason).split())[:MAX_WHY]
        by_reason.setdefault(f"{item.outcome.status}: {why}", item)
    for reason, item in list(by_reason.items())[:MOST_FAILED]:
        yield f"{item.values}: fails, {reason}"


def _score(item: _Tried) -> float:
    assert item.outcome.score is not None
    return item.outcome.score.value


def _time(item: _Tried, unit: str) -> str:
    """The time of one call; the score where no time is stored."""
    latency = item.outcome.latency_us
    return f"score {_score(item):.3f}" if latency is None else f"{latency.value:.2f}{unit}"
