"""Reads single trials from a store, for reports."""

from __future__ import annotations

from evoengine.candidate import kernel_file
from evoengine.errors import CandidateError
from evoengine.protocols import (
    FINAL,
    FIRST,
    VERIFY,
    PastRace,
    ProposalRow,
    RaceRow,
    ReplyRow,
    Store,
    VerdictRow,
)
from evoengine.records import Outcome, Proposal, Reply, Verdict
from evoengine.report.elite_evidence import EliteEvidence
from evoengine.report.search_marks import SearchMarks, last_unbeaten

TURNS = 16  # far more than a trial has: one first reply and one repair


class StoredTrials:
    """Reads trials of `store` by number."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._defaults: dict[str, dict[str, int]] = {}  # by the digest of a kernel's source

    def proposal_of(self, trial: int) -> Proposal | None:
        """The proposal of a trial; None if there is none yet."""
        row = self._store.get(ProposalRow, trial)
        return row.proposal if row else None

    def first_verdict_of(self, trial: int) -> Verdict | None:
        """The first verdict of a trial; None if there is none yet."""
        row = self._store.get(VerdictRow, trial, FIRST)
        return row.verdict if row else None

    def verification_of(self, trial: int) -> Verdict | None:
        """The verdict of the verification; None for a trial that was not verified.

        On the emulator only the first verdict holds the results of checked mode; they are copied
        into this one.
        """
        row = self._store.get(VerdictRow, trial, VERIFY)
        return _with_checked_mode(row.verdict, self.first_verdict_of(trial)) if row else None

    def verdict_of(self, trial: int) -> Verdict | None:
        """The verdict that counts: the verification if there is one, else the first."""
        return self.verification_of(trial) or self.first_verdict_of(trial)

    def final_of(self, trial: int) -> Verdict | None:
        """The verdict of the run's end on a trial that was an elite then; None without one."""
        row = self._store.get(VerdictRow, trial, FINAL)
        return row.verdict if row else None

    def evidence_of(self, trial: int) -> EliteEvidence:
        """The verdicts behind the elite that `trial` is."""
        first, selected = self._store.get(VerdictRow, trial, FIRST), self.verdict_of(trial)
        final = self.final_of(trial)
        # only runs that race for places measure their elites once more
        will_be_measured = (
            first is not None and first.promising is not None and not first.verdict.is_modelled
        )
        return EliteEvidence(selected, final, will_be_measured and final is None)

    def races_of(self, trial: int) -> list[RaceRow]:
        """The races of a trial against holders of places, in order."""
        found: list[RaceRow] = []
        while (row := self._store.get(RaceRow, trial, len(found))) is not None:
            found.append(row)
        return found

    def is_coarse(self, trial: int) -> bool:
        """Whether the timing of a trial's first verdict stopped early."""
        first = self.first_verdict_of(trial)
        return first is not None and first.is_coarse

    def marks_of(self, trial: int) -> SearchMarks:
        """What the search did with a trial; the figures of a verified one are not coarse."""
        races = [PastRace(row.holder, row.race.result) for row in self.races_of(trial)]
        return SearchMarks(
            is_coarse=self._store.get(VerdictRow, trial, VERIFY) is None and self.is_coarse(trial),
            lost_to=last_unbeaten(races),
        )

    def times_of(self, trial: int) -> tuple[str, str]:
        """When a judged trial began and when its last verdict ended, ISO 8601; empty if an earlier
        version did not store it.
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
        """The replies of the model, by turn."""
        found = []
        for turn in range(TURNS):
            row = self._store.get(ReplyRow, trial, turn)
            if row is None:
                break
            found.append(row.reply)
        return found


def _defaults_in(proposal: Proposal | None) -> dict[str, int]:
    """The default tunables; empty if the header cannot be read, so all count as changed."""
    try:
        return kernel_file.parse(proposal.source).tunables if proposal and proposal.source else {}
    except CandidateError:
        return {}


def _with_checked_mode(second: Verdict, first: Verdict | None) -> Verdict:
    found = {check.case: check.checked for check in first.checks} if first else {}
    checks = tuple(
        check.model_copy(update={"checked": check.checked or found.get(check.case)})
        for check in second.checks
    )
    return second.model_copy(update={"checks": checks})
