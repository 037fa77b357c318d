"""The settled trials as generators read them: source, outcome and the verdict that counts."""

from __future__ import annotations

from collections import OrderedDict

from evoengine.protocols import VERIFY, Evaluated, Store, VerdictRow
from evoengine.records import outcome_of
from evoengine.search.trial_candidate import stored_first_verdict, stored_proposal

IN_MEMORY = 64  # the rest is read from the store when it is needed


class EvaluatedTrials:
    """The settled trials of a run by number; those used last are kept in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._verified: set[int] = set()  # settled trials whose verification counts
        self._kept: OrderedDict[int, Evaluated] = OrderedDict()

    def add(self, trial: int, verified: bool, evaluated: Evaluated | None) -> None:
        """Adds a settled trial; `verified` says whether its verification counts. Without
        `evaluated` it is read from the store when it is needed.
        """
        if verified:
            self._verified.add(trial)
        if evaluated is not None:
            self._keep(trial, evaluated)

    def get(self, trial: int) -> Evaluated:
        """A settled trial."""
        if trial not in self._kept:
            self._keep(trial, self._load(trial))
        self._kept.move_to_end(trial)
        return self._kept[trial]

    def _keep(self, trial: int, evaluated: Evaluated) -> None:
        self._kept[trial] = evaluated
        while len(self._kept) > IN_MEMORY:
            self._kept.popitem(last=False)

    def _load(self, trial: int) -> Evaluated:
        proposal = stored_proposal(self._store, trial)
        first = stored_first_verdict(self._store, trial)
        row = self._store.get(VerdictRow, trial, VERIFY) if trial in self._verified else None
        verified = outcome_of(trial, proposal, row.verdict) if row else None
        outcome = outcome_of(trial, proposal, first).after(verified)
        return Evaluated(outcome, proposal.source or "", row.verdict if row else first)
