"""What a store holds about one trial, as reports ask for it."""

from __future__ import annotations

from evoengine.candidate import kernel_file
from evoengine.errors import CandidateError
from evoengine.protocols import FIRST, VERIFY, ProposalRow, ReplyRow, Store, VerdictRow
from evoengine.records import Outcome, Proposal, Reply, Verdict

TURNS = 16  # far more than a trial has: a first reply and one repair


class StoredTrials:
    """Reads trials of `store` by number."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._defaults: dict[str, dict[str, int]] = {}  # by the digest of a kernel's source

    def proposal_of(self, trial: int) -> Proposal | None:
        """What was proposed; None where nothing was yet."""
        row = self._store.get(ProposalRow, trial)
        return row.proposal if row else None

    def first_verdict_of(self, trial: int) -> Verdict | None:
        """The verdict before the candidate was verified."""
        row = self._store.get(VerdictRow, trial, FIRST)
        return row.verdict if row else None

    def verification_of(self, trial: int) -> Verdict | None:
        """The verdict of the verification; None for a trial that was not up for a place.

        What checked mode found stands with the first one alone, and is shown with this one too.
        """
        row = self._store.get(VerdictRow, trial, VERIFY)
        return _with_checked(row.verdict, self.first_verdict_of(trial)) if row else None

    def verdict_of(self, trial: int) -> Verdict | None:
        """The verdict that counts: the second one where there is one."""
        return self.verification_of(trial) or self.first_verdict_of(trial)

    def times_of(self, trial: int) -> tuple[str, str]:
        """When a judged trial was begun and when its last verdict was found, ISO 8601; empty where
        nobody wrote it down.
        """
        first, verified = (self._store.get(VerdictRow, trial, number) for number in (FIRST, VERIFY))
        last = verified or first
        return (first.began, last.ended) if first and last else ("", "")

    def changed_of(self, outcome: Outcome) -> dict[str, int]:
        """The tunables of a trial that differ from the defaults of its kernel."""
        if not outcome.tunables:
            return {}
        if outcome.source_digest not in self._defaults:
            self._defaults[outcome.source_digest] = _defaults_in(self.proposal_of(outcome.trial))
        defaults = self._defaults[outcome.source_digest]
        return {
            name: value for name, value in outcome.tunables.items() if defaults.get(name) != value
        }

    def replies_of(self, trial: int) -> list[Reply]:
        """The replies of a model, by turn."""
        found = []
        for turn in range(TURNS):
            row = self._store.get(ReplyRow, trial, turn)
            if row is None:
                break
            found.append(row.reply)
        return found


def _defaults_in(proposal: Proposal | None) -> dict[str, int]:
    """None of a kernel whose header cannot be read: then every tunable is one that was changed."""
    try:
        return kernel_file.parse(proposal.source).tunables if proposal and proposal.source else {}
    except CandidateError:
        return {}


def _with_checked(second: Verdict, first: Verdict | None) -> Verdict:
    found = {check.case: check.checked for check in first.checks} if first else {}
    checks = tuple(
        check.model_copy(update={"checked": check.checked or found.get(check.case)})
        for check in second.checks
    )
    return second.model_copy(update={"checks": checks})
