"""The candidate of a trial's proposal."""

from __future__ import annotations

from evoengine.candidate import kernel_file
from evoengine.candidate.kernel_file import Candidate
from evoengine.records import Proposal


def candidate_of(trial: int, proposal: Proposal) -> Candidate:
    """The candidate of a proposal that has a source; raises CandidateError."""
    assert proposal.source is not None
    return kernel_file.parse(proposal.source, f"trial {trial}").tuned(proposal.tunables)
