"""The request for the first trial after starting kernels that were not evaluated."""

from __future__ import annotations

from collections import Counter

from evoengine.candidate import kernel_file
from evoengine.config import RunConfig
from evoengine.digest import derived_seed
from evoengine.protocols import Evaluated, Island, Request
from evoengine.records import Elite, Environment, Proposal, Status, Verdict, outcome_of
from evoengine.task.schema import Task

PLACES = int(RunConfig.model_fields["places"].default)


def unevaluated_request(
    task: Task, environment: Environment, seeds: tuple[Evaluated, ...], run_seed: int = 0
) -> Request:
    """The request after `seeds`, which are taken as correct and in order."""
    return Request(
        trial=len(seeds),
        seed=derived_seed(run_seed, len(seeds)),
        task=task,
        environment=environment,
        seeds=seeds,
        elites=_as_elites(seeds),
        recent=(),
        pending=_nothing_pending,
        run_seed=run_seed,
        islands=_as_islands(seeds),
        settled=len(seeds),
    )


def unevaluated(trial: int, proposal: Proposal) -> Evaluated:
    """A starting kernel, taken as correct; raises CandidateError."""
    source = proposal.source or ""
    tier = kernel_file.parse(source, proposal.label).plan.precision
    verdict = Verdict(status=Status.correct, reason="not evaluated", tier=tier)
    return Evaluated(outcome_of(trial, proposal, verdict), source, verdict)


def _as_elites(seeds: tuple[Evaluated, ...]) -> tuple[tuple[Elite, Evaluated], ...]:
    """The first seeds of each tier as its elites."""
    taken: Counter[str] = Counter()
    held = []
    for evaluated in seeds:
        tier = evaluated.outcome.tier
        taken[tier] += 1
        if taken[tier] <= PLACES:
            held.append((Elite(tier=tier, place=taken[tier], outcome=evaluated.outcome), evaluated))
    return tuple(sorted(held, key=lambda pair: (pair[0].tier, pair[0].place)))


def _as_islands(seeds: tuple[Evaluated, ...]) -> tuple[Island, ...]:
    """One island for each of the first seeds of a tier."""
    return tuple(
        Island(
            tier=elite.tier,
            founder=elite.outcome.trial,
            elites=((elite.model_copy(update={"place": 1}), evaluated),),
            recent=(),
            trials_without_gain=0,
        )
        for elite, evaluated in _as_elites(seeds)
    )


async def _nothing_pending(wanted: object) -> tuple[Proposal, ...]:
    return ()
