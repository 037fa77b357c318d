"""The first verdicts and the verifications of trials; a candidate that several have is judged once
for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from evoengine.candidate.kernel_file import Candidate
from evoengine.digest import digest
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
from evoengine.records import Outcome, Proposal, Status, Verdict
from evoengine.search.candidate_keys import CandidateKeys, exact_key
from evoengine.search.settled_trials import SettledTrial
from evoengine.search.shared_verdicts import SharedVerdicts
from evoengine.search.trial_candidate import candidate_of, stored_proposal

WAITING = "waiting for the verdict on trial {}, which has the same candidate"


class TrialVerdicts:
    """The verdicts of a search, by an executor or of an earlier trial with the same candidate.

    Nothing depends on which of several alike ones is judged first: a verdict is shared by the same
    source, tunables and bar alone, and a proposal is refused as a repetition of what it could see.
    A finding on a wrong one may speak of the parents of the one that was judged.
    """

    def __init__(
        self,
        store: Store,
        executor: Executor,
        in_flight: int,
        now: Callable[[], str],
        progress: Callable[[int, str, str], Progress],
    ) -> None:
        """`in_flight` is how many trials are between a trial and its horizon, `progress` as of
        FinalVerdicts.
        """
        self._store = store
        self._executor = executor
        self._in_flight = in_flight
        self._now = now
        self._progress = progress
        self._keys = CandidateKeys(store)
        # settled trials whose keys nothing has asked for yet: a run that is only read needs none
        self._settled: list[Outcome] = []
        self._first_trial_of: dict[str, int] = {}  # by normal form: the first settled trial
        # of the trials in flight, and of those settled since the earliest of their horizons: what
        # is settled for longer, every trial can see, and is refused as a repetition of
        self._shared = SharedVerdicts()
        self._shared_verifications = SharedVerdicts()

    def share_stored(self, settled: int, elites_of: Callable[[int], Population | None]) -> None:
        """Shares what is stored with copies in flight, from number `settled` on, that have no
        verdict yet. `elites_of` returns the elites up to the horizon of a judged trial, None where
        that is not settled, as no search leaves it.

        Before any of them goes on, because a later copy may have been judged before an earlier one.
        """
        for trial, _ in self._store.trials(max(0, settled - self._in_flight)):
            row = self._store.get(ProposalRow, trial)
            first = self._store.get(VerdictRow, trial, FIRST)
            verification = self._store.get(VerdictRow, trial, VERIFY)
            elites = elites_of(trial)
            if row and first and first.verdict.status is not Status.rejected and elites:
                judged_as = _judged_as(row.proposal, elites.bar(first.verdict.tier))
                self._shared.add(judged_as, trial, first.verdict)
            if row and verification:
                self._shared_verifications.add(exact_key(row.proposal), trial, verification.verdict)

    def add(self, settled: SettledTrial) -> None:
        """Notes the next settled trial."""
        self._settled.append(settled.first)
        seen_by_all = settled.first.trial - self._in_flight
        self._shared.forget(seen_by_all)
        self._shared_verifications.forget(seen_by_all)

    def _read_settled(self) -> None:
        """Reads the keys of the trials that settled since the last time."""
        for first in self._settled:
            if first.source_digest:
                self._first_trial_of.setdefault(self._keys.of_outcome(first), first.trial)
        self._settled.clear()

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
        self._read_settled()
        earlier = self._first_trial_of.get(
            self._keys.of_proposal(proposal, candidate.source_digest)
        )
        if earlier is not None and earlier <= horizon:
            return Verdict(
                status=Status.rejected,
                reason=self._same_as(earlier, candidate.source_digest),
                tier=candidate.plan.precision,
            )
        bar = elites.bar(candidate.plan.precision)
        progress = self._progress(trial, proposal.label or candidate.plan.name, "")
        return await self._shared.get_or_evaluate(
            _judged_as(proposal, bar),
            trial,
            partial(
                self._executor.evaluate,
                candidate,
                progress,
                search=SearchBar(bar, self._right_parents(proposal)),
            ),
            on_wait=lambda other: progress(WAITING.format(other)),
        )

    def _right_parents(self, proposal: Proposal) -> tuple[Candidate, ...]:
        """The parents of a proposal whose first verdict is correct; a replayed proposal may name
        trials that this run has not judged.
        """
        verdicts = {
            parent: row.verdict
            for parent in proposal.parents
            if (row := self._store.get(VerdictRow, parent, FIRST)) is not None
        }
        return tuple(
            candidate_of(parent, stored_proposal(self._store, parent))
            for parent, verdict in verdicts.items()
            if verdict.status is Status.correct
        )

    async def verification(self, trial: int, proposal: Proposal) -> Verdict:
        """The verification, stored: a verdict by a process that has run no other candidate."""
        stored = self._store.get(VerdictRow, trial, VERIFY)
        if stored is not None:
            return stored.verdict
        began = self._now()
        progress = self._progress(trial, proposal.label, "verify: ")
        verdict = await self._shared_verifications.get_or_evaluate(
            exact_key(proposal),
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

    def _same_as(self, earlier: int, source_digest: str) -> str:
        """Why a proposal is not judged again."""
        same = digest(stored_proposal(self._store, earlier).source or "") == source_digest
        layout = "" if same else ", but for comments, layout, the header's order or its names"
        return f"the same as trial {earlier}{layout}"


def _judged_as(proposal: Proposal, bar: float | None) -> str:
    """Equal for candidates whose first verdict is the same: the bar decides when timing stops."""
    return f"{exact_key(proposal)} {bar!r}"
