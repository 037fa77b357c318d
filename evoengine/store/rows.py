"""What stores have in common: the names of rows, and an outcome from a proposal and a verdict."""

from __future__ import annotations

import math

from evoengine.digest import digest
from evoengine.records import Interval, Outcome, Proposal, RunInfo, Verdict
from evoengine.seams import ProposalRow, ReplyRow, Row


def name_of(row: Row) -> str:
    """How a message names `row`."""
    if isinstance(row, RunInfo):
        return "the run's description"
    if isinstance(row, ReplyRow):
        return f"reply {row.turn} of trial {row.trial}"
    if isinstance(row, ProposalRow):
        return f"the proposal of trial {row.trial}"
    return f"verdict {row.round} of trial {row.trial}"


def outcome_of(trial: int, proposal: Proposal, verdict: Verdict) -> Outcome:
    """A settled trial without its bulk."""
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
    """None for an interval with a NaN in it: SQLite has no NaN, and nothing can be ordered by one."""
    if interval is None or any(math.isnan(figure) for figure in (interval.value, interval.low, interval.high)):
        return None
    return interval
