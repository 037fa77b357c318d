"""Keys of candidates: equal for those that need to be judged only once."""

from __future__ import annotations

from evoengine.candidate import kernel_file
from evoengine.candidate.normal_form import normal_digest
from evoengine.digest import digest, digest_json
from evoengine.errors import CandidateError
from evoengine.protocols import Store
from evoengine.records import Outcome, Proposal
from evoengine.search.trial_candidate import stored_proposal


class CandidateKeys:
    """The keys of the candidates of a run; a source is read once, however many trials have it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._normal: dict[str, str] = {}  # by source digest

    def of_proposal(self, proposal: Proposal, source_digest: str) -> str:
        """The key of a proposal with a source of that digest."""
        return _key(self._normal_of(source_digest, proposal.source), proposal.tunables)

    def of_outcome(self, outcome: Outcome) -> str:
        """The key of a settled trial that has a source."""
        known = self._normal.get(outcome.source_digest)
        source = None if known else stored_proposal(self._store, outcome.trial).source
        return _key(known or self._normal_of(outcome.source_digest, source), outcome.tunables)

    def _normal_of(self, source_digest: str, source: str | None) -> str:
        """The digest of the normal form; that of the source where it cannot be parsed."""
        if source_digest not in self._normal:
            try:
                found = normal_digest(kernel_file.parse(source or ""))
            except CandidateError:
                found = source_digest
            self._normal[source_digest] = found
        return self._normal[source_digest]


def exact_key(proposal: Proposal) -> str:
    """Equal for proposals with one source and one choice of tunables."""
    return _key(digest(proposal.source or ""), proposal.tunables)


def _key(source: str, tunables: dict[str, int]) -> str:
    return f"{source} {digest_json(tunables)}"
