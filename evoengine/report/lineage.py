"""The ancestors of a kernel, up to the starting kernels."""

from __future__ import annotations

from collections.abc import Callable

from evoengine.records import Frozen, Interval, Proposal, Status
from evoengine.report.rows_from_store import VerdictLookup, display_name, speedup_of_verdict


class Ancestor(Frozen):
    """One trial of a lineage."""

    trial: int
    operator: str
    parents: tuple[int, ...]
    name: str
    tunables: dict[str, int]
    status: Status | None
    score: Interval | None
    speedup: Interval | None
    modelled_us: Interval | None  # if times are modelled
    insight: str


def lineage(
    trial: int, proposal_of: Callable[[int], Proposal | None], verdict_of: VerdictLookup
) -> tuple[Ancestor, ...]:
    """`trial` and all its ancestors, the latest first, each once."""
    found: dict[int, Ancestor] = {}
    waiting = [trial]
    while waiting:
        number = waiting.pop()
        proposal = proposal_of(number)
        if number in found or proposal is None:
            continue
        verdict = verdict_of(number)
        found[number] = Ancestor(
            trial=number,
            operator=proposal.operator,
            parents=proposal.parents,
            name=display_name(proposal.label, number),
            tunables=proposal.tunables,
            status=verdict.status if verdict else None,
            score=verdict.score if verdict else None,
            speedup=speedup_of_verdict(verdict) if verdict else None,
            modelled_us=verdict.latency_us if verdict and verdict.is_modelled else None,
            insight=proposal.insight,
        )
        waiting += proposal.parents
    return tuple(found[number] for number in sorted(found, reverse=True))
