"""What is remembered of a settled trial: the one way from proposal and verdict to an Outcome."""

from __future__ import annotations

import math

from evoengine.digest import digest
from evoengine.records import Interval, Outcome, Proposal, Verdict


def outcome_of(trial: int, proposal: Proposal, verdict: Verdict) -> Outcome:
    """A trial without its bulk; the same live and read from a store."""
    return Outcome(
        trial=trial,
        operator=proposal.operator,
        parents=proposal.parents,
        source_digest="" if proposal.source is None else digest(proposal.source),
        tunables=proposal.tunables,
        label=proposal.label,
        status=verdict.status,
        reason=verdict.reason,
        tier=verdict.tier,
        code_digest=verdict.code_digest,
        score=numbers_only(verdict.score),
        latency_us=numbers_only(verdict.latency_us),
    )


def numbers_only(interval: Interval | None) -> Interval | None:
    """None for an interval with a NaN in it: SQLite has no NaN, and nothing can be ordered by
    one.
    """
    if interval is None or any(
        math.isnan(figure) for figure in (interval.value, interval.low, interval.high)
    ):
        return None
    return interval
