"""A Store in memory, for tests and benchmarks that need no disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evoengine.errors import StoreError
from evoengine.protocols import (
    ChangeRow,
    EndRow,
    FailureRow,
    PastRace,
    ProposalRow,
    R,
    RaceRow,
    ReplyRow,
    RequestRow,
    Row,
    Spending,
    TrialSummary,
    VerdictRow,
)
from evoengine.records import RunInfo, Status, Unanswered, Usage, best_first, outcome_of
from evoengine.store import faults
from evoengine.store.row_names import name_of

RowKey = tuple[type, int, int]


def _key(row: Row) -> RowKey:
    if isinstance(row, RunInfo):
        return (RunInfo, 0, 0)
    if isinstance(row, ReplyRow):
        return (ReplyRow, row.trial, row.turn)
    if isinstance(row, ProposalRow):
        return (ProposalRow, row.trial, 0)
    if isinstance(row, (ChangeRow, EndRow)):
        return (type(row), 0, row.number)
    return (type(row), row.trial, row.part if isinstance(row, VerdictRow) else row.number)


def _required_rows(row: Row) -> tuple[RowKey, ...]:
    """The keys of the rows that must be stored before `row`."""
    if isinstance(row, VerdictRow):
        return ((ProposalRow, row.trial, 0),)
    if isinstance(row, RaceRow):
        return (ProposalRow, row.trial, 0), (ProposalRow, row.holder, 0)
    return ((RequestRow, row.trial, row.number),) if isinstance(row, FailureRow) else ()


class MemoryStore:
    """Implements protocols.Store in memory."""

    def __init__(self) -> None:
        self._rows: dict[RowKey, Row] = {}
        self._summaries: dict[int, TrialSummary] = {}

    def append(self, *rows: Row) -> None:
        new: dict[RowKey, Row] = {}
        for row in rows:
            key = _key(row)
            if key in self._rows or key in new:
                raise StoreError(faults.already_stored(name_of(row)))
            if any(key not in self._rows and key not in new for key in _required_rows(row)):
                raise StoreError(faults.missing_row(name_of(row)))
            new[key] = row
        self._rows |= new
        for row in rows:
            if isinstance(row, (ReplyRow, ProposalRow, VerdictRow, RaceRow)):
                self._summaries[row.trial] = self._summary(row.trial)

    def get(self, kind: type[R], trial: int = 0, part: int = 0) -> R | None:
        key = (
            kind,
            0 if kind in (RunInfo, ChangeRow, EndRow) else trial,
            0 if kind in (RunInfo, ProposalRow) else part,
        )
        row = self._rows.get(key)
        return row if isinstance(row, kind) else None

    def trials(self, start: int = 0) -> Iterator[tuple[int, TrialSummary]]:
        for trial in sorted(number for number in self._summaries if number >= start):
            yield trial, self._summaries[trial]

    def spent(self) -> Spending:
        usages = [row.reply.usage for row in self._rows.values() if isinstance(row, ReplyRow)]
        unpriced = sum((usage for usage in usages if not usage.cost_usd), Usage())
        longest = max((usage.completion_tokens for usage in usages), default=0)
        return Spending(sum(usages, Usage()), unpriced, self._unanswered(), longest)

    def _unanswered(self) -> Unanswered:
        rows = [
            row
            for row in self._rows.values()
            if isinstance(row, RequestRow) and self._may_be_paid(row)
        ]
        return Unanswered(
            requests=len(rows),
            most_usd=sum(row.most_usd or 0.0 for row in rows),
            unpriced=sum(row.most_usd is None for row in rows),
            most_tokens=sum(row.most_tokens or 0 for row in rows),
            uncounted=sum(row.most_tokens is None for row in rows),
        )

    def _may_be_paid(self, row: RequestRow) -> bool:
        failure = self.get(FailureRow, row.trial, row.number)
        if failure is not None and not failure.maybe_paid:
            return False
        last = max(
            key[2]
            for key, item in self._rows.items()
            if isinstance(item, RequestRow) and (item.trial, item.turn) == (row.trial, row.turn)
        )
        return row.number != last or self.get(ReplyRow, row.trial, row.turn) is None

    def counts(self) -> dict[Status, int]:
        counts = Counter(
            summary.outcome.status.after(summary.verified.status if summary.verified else None)
            for summary in self._summaries.values()
            if summary.outcome
        )
        return best_first(counts)

    def last_trial(self) -> int | None:
        """The highest number of a stored trial; None if there is none."""
        return max(self._summaries, default=None)

    def close(self) -> None:
        """Has nothing to close."""

    def _summary(self, trial: int) -> TrialSummary:
        proposed = self._rows.get((ProposalRow, trial, 0))
        if not isinstance(proposed, ProposalRow):
            return TrialSummary(proposed=False, outcome=None, verified=None)
        verdicts = [self._rows.get((VerdictRow, trial, number)) for number in (0, 1)]
        first, second = (
            (
                outcome_of(trial, proposed.proposal, row.verdict)
                if isinstance(row, VerdictRow)
                else None
            )
            for row in verdicts
        )
        stored = verdicts[0]
        promising = stored.promising if isinstance(stored, VerdictRow) else None
        return TrialSummary(True, first, second, promising, self._races(trial))

    def _races(self, trial: int) -> tuple[PastRace, ...]:
        found = list[PastRace]()
        while isinstance(row := self._rows.get((RaceRow, trial, len(found))), RaceRow):
            found.append(PastRace(row.holder, row.race.result))
        return tuple(found)
