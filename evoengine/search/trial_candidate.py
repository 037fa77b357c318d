"""The proposal and the first verdict of a stored trial, and the candidate of a proposal."""

from __future__ import annotations

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.protocols import FIRST, ProposalRow, Store, VerdictRow
from evoengine.records import Proposal, Verdict


def stored_proposal(store: Store, trial: int) -> Proposal:
    """The proposal of a trial that has one."""
    row = store.get(ProposalRow, trial)
    assert row is not None
    return row.proposal


def stored_first_verdict(store: Store, trial: int) -> Verdict:
    """The first verdict of a trial that has one."""
    row = store.get(VerdictRow, trial, FIRST)
    assert row is not None
    return row.verdict


def candidate_of(trial: int, proposal: Proposal) -> Candidate:
    """The candidate of a proposal that has a source; raises CandidateError."""
    assert proposal.source is not None
    return kernel_file.parse(proposal.source, f"trial {trial}").tuned(proposal.tunables)
