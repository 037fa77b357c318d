"""The first verdicts and the verifications of trials; a candidate that several have is judged once
for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from evoengine.digest import digest, digest_json
from evoengine.errors import CandidateError
from evoengine.population.elites import Population
from evoengine.protocols import (
    FIRST,
    VERIFY,
    Executor,
    Progress,
    ProposalRow,
    SearchBar,
    Store,
    VerdictRow,
)
from evoengine.records import Proposal, Status, Verdict
from evoengine.search.settled_trials import SettledTrial
from evoengine.search.shared_verdicts import SharedVerdicts
from evoengine.search.trial_candidate import candidate_of, stored_first_verdict

WAITING = "waiting for the verdict on trial {}, which has the same candidate"


class TrialVerdicts:
    """The verdicts of a search, by an executor or of an earlier trial with the same candidate."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        now: Callable[[], str],
        progress: Callable[[int, str, str], Progress],
    ) -> None:
        """`progress` as of FinalVerdicts."""
        self._store = store
        self._executor = executor
        self._now = now
        self._progress = progress
        # by candidate key: the first settled trial, and the first one that was verified
        self._first_trial_of: dict[str, int] = {}
        self._first_verified_of: dict[str, int] = {}
        # of the trials in flight
        self._shared = SharedVerdicts()
        self._shared_verifications = SharedVerdicts()

    def share_stored(self, settled: int) -> None:
        """Shares what is stored of the trials in flight, from number `settled` on, with copies that
        have no verdict yet.

        Before any of them goes on, because a later copy may have been judged before an earlier one.
        """
        for trial, _ in self._store.trials(settled):
            row = self._store.get(ProposalRow, trial)
            first = self._store.get(VerdictRow, trial, FIRST)
            verification = self._store.get(VerdictRow, trial, VERIFY)
            if row and first and first.verdict.status is not Status.rejected:
                self._shared.add(_key_of(row.proposal), trial, first.verdict)
            if row and verification:
                self._shared_verifications.add(_key_of(row.proposal), trial, verification.verdict)

    def add(self, settled: SettledTrial) -> None:
        """Notes a settled trial, whose verdicts are read from the store from now on."""
        first = settled.first
        key = _candidate_key(first.source_digest, first.tunables)
        self._first_trial_of.setdefault(key, first.trial)
        if settled.verified is not None:
            self._first_verified_of.setdefault(key, first.trial)
        self._shared.forget(first.trial)
        self._shared_verifications.forget(first.trial)

    async def first(
        self, trial: int, proposal: Proposal, elites: Population, horizon: int
    ) -> Verdict:
        """The first verdict of a proposal, not stored yet; rejected without a candidate or for a
        repeated one. `elites` are those up to `horizon`, the trial's.
        """
        if proposal.source is None:
            reason, _, detail = (proposal.problem or "no candidate").partition("\n")
            return Verdict(status=Status.rejected, reason=reason, detail=detail)
        try:
            candidate = candidate_of(trial, proposal)
        except CandidateError as error:
            return Verdict(status=Status.rejected, reason=str(error))
        key = _candidate_key(candidate.source_digest, proposal.tunables)
        earlier = self._first_trial_of.get(key)
        if earlier is None:
            progress = self._progress(trial, proposal.label or candidate.plan.name, "")
            return await self._shared.get_or_evaluate(
                key,
                trial,
                partial(
                    self._executor.evaluate,
                    candidate,
                    progress,
                    search=SearchBar(elites.bar(candidate.plan.precision)),
                ),
                on_wait=lambda other: progress(WAITING.format(other)),
            )
        if earlier > horizon:  # it was in flight when this one was proposed
            return stored_first_verdict(self._store, earlier)
        return Verdict(
            status=Status.rejected,
            reason=f"the same as trial {earlier}",
            tier=candidate.plan.precision,
        )

    async def verification(self, trial: int, proposal: Proposal) -> Verdict:
        """The verification, stored: a verdict by a process that has run no other candidate."""
        stored = self._store.get(VerdictRow, trial, VERIFY)
        if stored is not None:
            return stored.verdict
        key = _key_of(proposal)
        if (settled := self._settled_verification(key)) is not None:
            self._store.append(VerdictRow(trial, VERIFY, settled, self._now(), self._now()))
            return settled
        began = self._now()
        progress = self._progress(trial, proposal.label, "verify: ")
        verdict = await self._shared_verifications.get_or_evaluate(
            key,
            trial,
            partial(
                self._executor.evaluate,
                candidate_of(trial, proposal),
                progress,
                verify=True,
                search=SearchBar(),
            ),
            on_wait=lambda other: progress(WAITING.format(other)),
        )
        self._store.append(VerdictRow(trial, VERIFY, verdict, began, self._now()))
        return verdict

    def _settled_verification(self, key: str) -> Verdict | None:
        """The verification of a settled trial with the same candidate."""
        earlier = self._first_verified_of.get(key)
        row = None if earlier is None else self._store.get(VerdictRow, earlier, VERIFY)
        return row.verdict if row else None


def _candidate_key(source_digest: str, tunables: dict[str, int]) -> str:
    """Equal for identical candidates; "" without a candidate."""
    return f"{source_digest} {digest_json(tunables)}" if source_digest else ""


def _key_of(proposal: Proposal) -> str:
    return _candidate_key(digest(proposal.source or ""), proposal.tunables)
