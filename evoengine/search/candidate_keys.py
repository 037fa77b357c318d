"""Keys of candidates: equal for those that need to be judged only once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evoengine.candidate import kernel_file
from evoengine.candidate.normal_form import normal_digest
from evoengine.digest import digest, digest_json
from evoengine.errors import CandidateError
from evoengine.protocols import Store
from evoengine.records import Outcome, Proposal
from evoengine.search.trial_candidate import stored_proposal


@dataclass(frozen=True)
class _NormalSource:
    """The digest of a source's normal form, and the values that its tunables have by default."""

    digest: str
    defaults: dict[str, int]


class CandidateKeys:
    """The keys of the candidates of a run; a source is read once, however many trials have it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._normal: dict[str, _NormalSource] = {}  # by source digest

    def of_proposal(self, proposal: Proposal, source_digest: str) -> str:
        """The key of a proposal with a source of that digest."""
        return self._key_of(source_digest, proposal.tunables, lambda: proposal.source)

    def of_outcome(self, outcome: Outcome) -> str:
        """The key of a settled trial that has a source."""
        return self._key_of(
            outcome.source_digest,
            outcome.tunables,
            lambda: stored_proposal(self._store, outcome.trial).source,
        )

    def _key_of(
        self, source_digest: str, tunables: dict[str, int], source: Callable[[], str | None]
    ) -> str:
        """The normal form with all values that are chosen: those of a kernel that is sent again
        with the best values first are its defaults.
        """
        if source_digest not in self._normal:
            self._normal[source_digest] = _normal(source() or "", source_digest)
        normal = self._normal[source_digest]
        return _key(normal.digest, {**normal.defaults, **tunables})


def _normal(source: str, source_digest: str) -> _NormalSource:
    """The normal form of `source`; the digest of the text where it cannot be parsed."""
    try:
        candidate = kernel_file.parse(source)
    except CandidateError:
        return _NormalSource(source_digest, {})
    return _NormalSource(normal_digest(candidate), candidate.tunables)


def exact_key(proposal: Proposal) -> str:
    """Equal for proposals with one source and one choice of tunables."""
    return _key(digest(proposal.source or ""), proposal.tunables)


def _key(source: str, tunables: dict[str, int]) -> str:
    return f"{source} {digest_json(tunables)}"
