"""Elites measured once more at the end of a run: figures that had no part in choosing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from evoengine.protocols import FINAL, Executor, Progress, Store, VerdictRow
from evoengine.records import Elite, Status
from evoengine.search.trial_candidate import candidate_of, stored_proposal

SITTINGS = 6
ATTEMPTS = 3  # of one that is disturbed from outside each time


class FinalVerdicts:
    """The rows FINAL of a run's elites."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        now: Callable[[], str],
        progress: Callable[[int, str, str], Progress],
    ) -> None:
        """`progress` makes what is called with the steps of a trial, from its number, its label and
        what the steps begin with.
        """
        self._store = store
        self._executor = executor
        self._now = now
        self._progress = progress

    def missing(self, elites: Iterable[Elite]) -> list[int]:
        """The trials of `elites` that have no such row yet."""
        trials = [elite.outcome.trial for elite in elites]
        return [it for it in trials if self._store.get(VerdictRow, it, FINAL) is None]

    async def measure(self, trial: int) -> VerdictRow:
        """The row of a trial, not stored yet."""
        began, proposal = self._now(), stored_proposal(self._store, trial)
        for _ in range(ATTEMPTS):
            verdict = await self._executor.evaluate(
                candidate_of(trial, proposal),
                self._progress(trial, proposal.label, "final: "),
                verify=True,
                sittings=SITTINGS,
            )
            if verdict.status is not Status.unstable:
                break
        return VerdictRow(trial, FINAL, verdict, began, self._now())

    async def store(self, row: VerdictRow) -> None:
        """Stores `row` with the kernel activity of its candidate, if that is correct."""
        if row.verdict.status is Status.correct:
            row = await self._with_activity(row)
        self._store.append(row)

    async def _with_activity(self, row: VerdictRow) -> VerdictRow:
        proposal = stored_proposal(self._store, row.trial)
        found = await self._executor.activity(
            candidate_of(row.trial, proposal),
            self._progress(row.trial, proposal.label, "kernel activity: "),
        )
        activity = {"activity": found.cases, "activity_problem": found.problem}
        return replace(row, verdict=row.verdict.model_copy(update=activity))
