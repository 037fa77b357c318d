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
from evoengine.search.candidate_keys import CandidateKeys
from evoengine.search.settled_trials import SettledTrial
from evoengine.search.shared_verdicts import SharedVerdicts
from evoengine.search.trial_candidate import candidate_of, stored_first_verdict, stored_proposal

WAITING = "waiting for the verdict on trial {}, which has the same candidate"


class TrialVerdicts:
    """The verdicts of a search, by an executor or of an earlier trial with the same candidate.

    Nothing depends on which of several alike ones is judged first: a verdict is shared by the same
    source, tunables and bar alone, and a proposal is refused as a repetition of what it could see.
    """

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
        self._keys = CandidateKeys(store)
        # settled trials whose keys nothing has asked for yet: a run that is only read needs none
        self._settled: list[SettledTrial] = []
        self._first_trial_of: dict[str, int] = {}  # by normal form: the first settled trial
        # the settled trials that were judged, by `_judged_as`, and verified, by `_exact`
        self._judged: dict[str, int] = {}
        self._verified: dict[str, int] = {}
        self._judged_as_of: dict[int, str] = {}  # of the trials judged by this process
        # by `_exact`: trials judged before a resume whose bar is not known yet, with their verdicts
        self._judged_later: dict[str, tuple[int, Verdict]] = {}
        # of the trials in flight
        self._shared = SharedVerdicts()
        self._shared_verifications = SharedVerdicts()

    def share_stored(self, settled: int, elites_of: Callable[[int], Population | None]) -> None:
        """Shares what is stored of the trials in flight, from number `settled` on, with copies that
        have no verdict yet. `elites_of` returns the elites up to the horizon of a trial, None until
        that is settled.

        Before any of them goes on, because a later copy may have been judged before an earlier one.
        """
        for trial, _ in self._store.trials(settled):
            row = self._store.get(ProposalRow, trial)
            first = self._store.get(VerdictRow, trial, FIRST)
            verification = self._store.get(VerdictRow, trial, VERIFY)
            if row and first and first.verdict.status is not Status.rejected:
                self._share_first(trial, row.proposal, first.verdict, elites_of(trial))
            if row and verification:
                self._shared_verifications.add(_exact(row.proposal), trial, verification.verdict)

    def _share_first(
        self, trial: int, proposal: Proposal, verdict: Verdict, elites: Population | None
    ) -> None:
        if elites is not None:
            bar = elites.bar(verdict.tier)
            self._shared.add(_judged_as(_exact(proposal), bar), trial, verdict)
        elif not verdict.is_coarse:
            # places only get faster: what is not coarse there is not for a trial before it
            self._judged_later.setdefault(_exact(proposal), (trial, verdict))

    def add(self, settled: SettledTrial) -> None:
        """Notes a settled trial, whose verdicts are read from the store from now on."""
        self._settled.append(settled)
        if judged_as := self._judged_as_of.pop(settled.first.trial, ""):
            self._judged.setdefault(judged_as, settled.first.trial)
        self._shared.forget(settled.first.trial)
        self._shared_verifications.forget(settled.first.trial)

    def _read_settled(self) -> None:
        """Reads the keys of the trials that settled since the last time."""
        for settled in self._settled:
            first = settled.first
            if not first.source_digest:
                continue
            self._first_trial_of.setdefault(self._keys.of_outcome(first), first.trial)
            if settled.verified is not None:
                exact = _exact_key(first.source_digest, first.tunables)
                self._verified.setdefault(exact, first.trial)
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
        judged_as = _judged_as(_exact(proposal), bar)
        if (judged := self._judged.get(judged_as)) is not None:  # settled since the horizon
            return stored_first_verdict(self._store, judged)
        later, verdict = self._judged_later.get(_exact(proposal), (-1, None))
        if verdict is not None and trial < later:
            return verdict
        self._judged_as_of[trial] = judged_as
        progress = self._progress(trial, proposal.label or candidate.plan.name, "")
        return await self._shared.get_or_evaluate(
            judged_as,
            trial,
            partial(self._executor.evaluate, candidate, progress, search=SearchBar(bar)),
            on_wait=lambda other: progress(WAITING.format(other)),
        )

    async def verification(self, trial: int, proposal: Proposal) -> Verdict:
        """The verification, stored: a verdict by a process that has run no other candidate."""
        stored = self._store.get(VerdictRow, trial, VERIFY)
        if stored is not None:
            return stored.verdict
        self._read_settled()
        key = _exact(proposal)
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
        earlier = self._verified.get(key)
        row = None if earlier is None else self._store.get(VerdictRow, earlier, VERIFY)
        return row.verdict if row else None

    def _same_as(self, earlier: int, source_digest: str) -> str:
        """Why a proposal is not judged again."""
        same = digest(stored_proposal(self._store, earlier).source or "") == source_digest
        layout = "" if same else ", but for comments, layout, the header's order or its names"
        return f"the same as trial {earlier}{layout}"


def _exact(proposal: Proposal) -> str:
    return _exact_key(digest(proposal.source or ""), proposal.tunables)


def _exact_key(source_digest: str, tunables: dict[str, int]) -> str:
    """Equal for candidates with one source and one choice of tunables."""
    return f"{source_digest} {digest_json(tunables)}"


def _judged_as(exact: str, bar: float | None) -> str:
    """Equal for candidates whose first verdict is the same: the bar decides when timing stops."""
    return f"{exact} {bar!r}"
