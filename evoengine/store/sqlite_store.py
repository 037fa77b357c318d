"""The Store of a real run: one SQLite file, append-only.

Write-ahead log with `synchronous=FULL`: a commit that has returned is on the disk, and
an unfinished one leaves no trace, whenever the process or the machine dies.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError
from pydantic_core import from_json

from evoengine.digest import digest
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
from evoengine.records import (
    Interval,
    Outcome,
    Proposal,
    Race,
    RaceResult,
    Reply,
    RunEnd,
    RunInfo,
    SettingsChange,
    Status,
    Unanswered,
    Usage,
    Verdict,
    best_first,
    numbers_only,
)
from evoengine.store.database import open_database
from evoengine.store.faults import translated
from evoengine.store.row_names import name_of

COMPRESSION = 1  # a verdict of 32 KB: 0.2 ms and 8.2 KB; level 6 takes 1.1 ms for 7.7 KB
# trials read at once: no statement stays open while the caller works, memory use stays flat
PAGE_ROWS = 2000

# Includes trials with a reply but no proposal yet: their replies are paid for.
_TRIALS = """
SELECT t.trial, p.trial IS NOT NULL, p.operator, p.parents, p.source_digest, p.tunables, p.label,
    a.status, a.reason, a.tier, a.code_digest,
    a.score_value, a.score_low, a.score_high,
    a.latency_value_us, a.latency_low_us, a.latency_high_us,
    b.status, b.reason, b.tier, b.code_digest,
    b.score_value, b.score_low, b.score_high,
    b.latency_value_us, b.latency_low_us, b.latency_high_us,
    a.promising
FROM (
    SELECT trial FROM proposals WHERE trial >= :start
    UNION SELECT trial FROM replies WHERE trial >= :start
    ORDER BY trial LIMIT :rows
) AS t
LEFT JOIN proposals AS p ON p.trial = t.trial
LEFT JOIN verdicts AS a ON a.trial = t.trial AND a.round = 0
LEFT JOIN verdicts AS b ON b.trial = t.trial AND b.round = 1
ORDER BY t.trial
"""
# Of the trials of one page; few trials race.
_RACES = """
SELECT trial, holder, result FROM races WHERE trial BETWEEN ? AND ? ORDER BY trial, number
"""
_SPENT = """
SELECT coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0), total(cost_usd),
    coalesce(max(completion_tokens), 0)
FROM replies
"""
_UNPRICED = """
SELECT coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0)
FROM replies WHERE cost_usd = 0
"""
# The last request of a turn is the one that its reply answers.
_UNANSWERED = """
SELECT count(*), total(r.most_usd), count(*) - count(r.most_usd),
    coalesce(sum(r.most_tokens), 0), count(*) - count(r.most_tokens)
FROM requests AS r
WHERE NOT EXISTS (
    SELECT 1 FROM request_failures AS f
    WHERE f.trial = r.trial AND f.number = r.number AND NOT f.maybe_paid
)
AND NOT (
    EXISTS (SELECT 1 FROM replies AS p WHERE p.trial = r.trial AND p.turn = r.turn)
    AND r.number = (
        SELECT max(q.number) FROM requests AS q WHERE q.trial = r.trial AND q.turn = r.turn
    )
)
"""
# The columns of _TRIALS where both verdicts and `promising` begin.
_FIRST_AT, _VERIFY_AT, _PROMISING_AT = 7, 17, 27


class SqliteStore:
    """Implements protocols.Store on the database at `path`; usable from several threads."""

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        """Opens the database; raises StoreError, or NewerSchema if a later evoengine wrote it."""
        self._path = path
        self._read_only = read_only
        self._lock = threading.RLock()
        self._connection = open_database(path, create, read_only)

    def append(self, *rows: Row) -> None:
        if self._read_only:
            raise StoreError(
                f"{self._path}: opened for reading only;"
                f" {name_of(rows[0]) if rows else 'nothing'} cannot be stored"
            )
        with self._lock, translated(self._path), self._transaction():
            for row in rows:
                with translated(self._path, name_of(row)):
                    self._insert(row)

    def get(self, kind: type[R], trial: int = 0, part: int = 0) -> R | None:
        readers: dict[type[Any], Any] = {
            RunInfo: self._run,
            ReplyRow: self._reply,
            ProposalRow: self._proposal,
            VerdictRow: self._verdict,
            RaceRow: self._race,
            RequestRow: self._request,
            FailureRow: self._failure,
            ChangeRow: self._change,
            EndRow: self._end,
        }
        with self._lock, translated(self._path), self._readable(kind, trial):
            row: R | None = readers[kind](trial, part)
            return row

    def trials(self, start: int = 0) -> Iterator[tuple[int, TrialSummary]]:
        while True:
            page = self._rows(_TRIALS, {"start": start, "rows": PAGE_ROWS})
            races = self._races(page[0][0], page[-1][0]) if page else {}
            for row in page:
                yield row[0], _summary(row, tuple(races.get(row[0], ())))
            if len(page) < PAGE_ROWS:
                return
            start = page[-1][0] + 1

    def _races(self, first: int, last: int) -> dict[int, list[PastRace]]:
        """The races of the trials from `first` to `last`, by trial."""
        races: dict[int, list[PastRace]] = {}
        for trial, holder, result in self._rows(_RACES, (first, last)):
            races.setdefault(trial, []).append(PastRace(holder, RaceResult(result)))
        return races

    def spent(self) -> Spending:
        total = self._rows(_SPENT)[0]
        unpriced = self._rows(_UNPRICED)[0]
        requests, most_usd, without_price, most_tokens, uncounted = self._rows(_UNANSWERED)[0]
        return Spending(
            Usage(prompt_tokens=total[0], completion_tokens=total[1], cost_usd=total[2]),
            Usage(prompt_tokens=unpriced[0], completion_tokens=unpriced[1]),
            Unanswered(
                requests=requests,
                most_usd=most_usd,
                unpriced=without_price,
                most_tokens=most_tokens,
                uncounted=uncounted,
            ),
            longest_reply=total[3],
        )

    def counts(self) -> dict[Status, int]:
        counts: dict[Status, int] = {}
        for first, second, count in self._rows(
            "SELECT a.status, b.status, count(*) FROM verdicts AS a LEFT JOIN verdicts AS b ON"
            " b.trial = a.trial AND b.round = 1 WHERE a.round = 0 GROUP BY a.status, b.status"
        ):
            status = Status(first).after(Status(second) if second else None)
            counts[status] = counts.get(status, 0) + count
        return best_first(counts)

    def last_trial(self) -> int | None:
        """The highest number of a stored trial; None if there is none."""
        row = self._rows(
            "SELECT max(trial) FROM (SELECT max(trial) AS trial FROM proposals UNION ALL SELECT"
            " max(trial) FROM replies)"
        )[0]
        return None if row[0] is None else int(row[0])

    def close(self) -> None:
        """Closes the database; safe more than once."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite itself rolls back after some errors, such as a full disk
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _readable(self, kind: type[Any], trial: int) -> Iterator[None]:
        try:
            yield
        except (ValidationError, zlib.error, ValueError) as error:
            raise StoreError(
                f"{self._path}: {kind.__name__} of trial {trial} cannot be read:"
                f" {str(error).splitlines()[0]}"
            ) from error

    def _rows(self, query: str, values: Any = ()) -> list[Any]:
        with self._lock, translated(self._path):
            return self._connection.execute(query, values).fetchall()

    def _insert(self, row: Row) -> None:
        if isinstance(row, RunInfo):
            self._connection.execute("INSERT INTO run VALUES (1, ?)", (row.model_dump_json(),))
        elif isinstance(row, ReplyRow):
            self._insert_reply(row)
        elif isinstance(row, ProposalRow):
            self._insert_proposal(row)
        elif isinstance(row, VerdictRow):
            self._insert_verdict(row)
        elif isinstance(row, RaceRow):
            self._insert_race(row)
        else:
            self._insert_small(row)

    def _insert_small(self, row: RequestRow | FailureRow | ChangeRow | EndRow) -> None:
        if isinstance(row, RequestRow):
            values: tuple[Any, ...] = (row.trial, row.number, row.turn, row.most_usd, row.sent)
            self._connection.execute(
                "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)", (*values, row.most_tokens)
            )
        elif isinstance(row, FailureRow):
            values = (row.trial, row.number, row.maybe_paid, row.reason)
            self._connection.execute("INSERT INTO request_failures VALUES (?, ?, ?, ?)", values)
        elif isinstance(row, EndRow):
            values = (row.number, row.end.model_dump_json())
            self._connection.execute("INSERT INTO ends VALUES (?, ?)", values)
        else:
            values = (row.number, row.change.model_dump_json())
            self._connection.execute("INSERT INTO changes VALUES (?, ?)", values)

    def _insert_reply(self, row: ReplyRow) -> None:
        reply, usage = row.reply, row.reply.usage
        values = (
            row.trial,
            row.turn,
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.cost_usd,
            reply.model,
            reply.finish_reason,
        )
        self._connection.execute(
            "INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, _packed(reply.prompt), _packed(reply.text)),
        )

    def _insert_proposal(self, row: ProposalRow) -> None:
        proposal = row.proposal
        name = None if proposal.source is None else self._source(proposal.source)
        values = (
            row.trial,
            proposal.operator,
            json.dumps(proposal.parents),
            name,
            json.dumps(proposal.tunables),
        )
        self._connection.execute(
            "INSERT INTO proposals VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, proposal.label, proposal.problem, proposal.insight),
        )

    def _source(self, source: str) -> str:
        """The digest of `source`, which is in the database afterwards, once."""
        name = digest(source)
        if not self._connection.execute(
            "SELECT 1 FROM sources WHERE digest = ?", (name,)
        ).fetchone():
            self._connection.execute("INSERT INTO sources VALUES (?, ?)", (name, _packed(source)))
        return name

    def _insert_verdict(self, row: VerdictRow) -> None:
        verdict, key = row.verdict, (row.trial, row.part)
        values = (
            verdict.status.value,
            verdict.reason,
            verdict.tier,
            verdict.code_digest,
            *_figures(verdict.score),
            *_figures(verdict.latency_us),
            row.began,
            row.ended,
            row.promising,
        )
        self._connection.execute(
            "INSERT INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*key, *values),
        )
        self._connection.execute(
            "INSERT INTO verdict_bodies VALUES (?, ?, ?)",
            (*key, _packed(verdict.model_dump_json())),
        )

    def _run(self, trial: int, part: int) -> RunInfo | None:
        row = self._connection.execute("SELECT body FROM run").fetchone()
        return RunInfo.model_validate_json(row[0]) if row else None

    def _reply(self, trial: int, turn: int) -> ReplyRow | None:
        query = (
            "SELECT model, prompt, text, finish_reason, prompt_tokens, completion_tokens, cost_usd "
            "FROM replies WHERE trial = ? AND turn = ?"
        )
        row = self._connection.execute(query, (trial, turn)).fetchone()
        if row is None:
            return None
        usage = Usage(prompt_tokens=row[4], completion_tokens=row[5], cost_usd=row[6])
        return ReplyRow(
            trial,
            turn,
            Reply(
                model=row[0],
                prompt=_unpacked(row[1]),
                text=_unpacked(row[2]),
                usage=usage,
                finish_reason=row[3],
            ),
        )

    def _proposal(self, trial: int, part: int) -> ProposalRow | None:
        query = (
            "SELECT operator, parents, body, tunables, problem, insight, label "
            "FROM proposals LEFT JOIN sources ON digest = source_digest WHERE trial = ?"
        )
        row = self._connection.execute(query, (trial,)).fetchone()
        if row is None:
            return None
        source = None if row[2] is None else _unpacked(row[2])
        parents, tunables = tuple(from_json(row[1])), from_json(row[3])
        proposal = Proposal(
            operator=row[0],
            parents=parents,
            source=source,
            tunables=tunables,
            problem=row[4],
            insight=row[5],
            label=row[6],
        )
        return ProposalRow(trial, proposal)

    def _verdict(self, trial: int, number: int) -> VerdictRow | None:
        query = (
            "SELECT body, began, ended, promising FROM verdict_bodies NATURAL JOIN verdicts"
            " WHERE trial = ? AND round = ?"
        )
        row = self._connection.execute(query, (trial, number)).fetchone()
        if row is None:
            return None
        verdict = Verdict.model_validate_json(_unpacked(row[0]))
        return VerdictRow(trial, number, verdict, row[1], row[2], _maybe_bool(row[3]))

    def _race(self, trial: int, number: int) -> RaceRow | None:
        query = "SELECT holder, body, began, ended FROM races WHERE trial = ? AND number = ?"
        row = self._connection.execute(query, (trial, number)).fetchone()
        if row is None:
            return None
        race = Race.model_validate_json(_unpacked(row[1]))
        return RaceRow(trial, number, row[0], race, row[2], row[3])

    def _insert_race(self, row: RaceRow) -> None:
        values = (row.trial, row.number, row.holder, row.race.result.value, row.began, row.ended)
        self._connection.execute(
            "INSERT INTO races VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*values, _packed(row.race.model_dump_json())),
        )

    def _request(self, trial: int, number: int) -> RequestRow | None:
        query = (
            "SELECT turn, most_usd, most_tokens, sent FROM requests WHERE trial = ? AND number = ?"
        )
        row = self._connection.execute(query, (trial, number)).fetchone()
        return RequestRow(trial, number, *row) if row else None

    def _failure(self, trial: int, number: int) -> FailureRow | None:
        query = "SELECT reason, maybe_paid FROM request_failures WHERE trial = ? AND number = ?"
        row = self._connection.execute(query, (trial, number)).fetchone()
        return FailureRow(trial, number, row[0], bool(row[1])) if row else None

    def _change(self, trial: int, number: int) -> ChangeRow | None:
        row = self._connection.execute(
            "SELECT body FROM changes WHERE number = ?", (number,)
        ).fetchone()
        return ChangeRow(number, SettingsChange.model_validate_json(row[0])) if row else None

    def _end(self, trial: int, number: int) -> EndRow | None:
        row = self._connection.execute(
            "SELECT body FROM ends WHERE number = ?", (number,)
        ).fetchone()
        return EndRow(number, RunEnd.model_validate_json(row[0])) if row else None


def _summary(row: tuple[Any, ...], races: tuple[PastRace, ...]) -> TrialSummary:
    if not row[1]:
        return TrialSummary(proposed=False, outcome=None, verified=None)
    about = (row[0], row[2], tuple(from_json(row[3])), row[4] or "", from_json(row[5]), row[6])
    return TrialSummary(
        True,
        _outcome(about, row[_FIRST_AT:_VERIFY_AT]),
        _outcome(about, row[_VERIFY_AT:_PROMISING_AT]),
        _maybe_bool(row[_PROMISING_AT]),
        races,
    )


def _outcome(about: tuple[Any, ...], found: tuple[Any, ...]) -> Outcome | None:
    if found[0] is None:
        return None
    trial, operator, parents, source_digest, tunables, label = about
    status, reason, tier, code_digest = found[:4]
    return Outcome(
        trial=trial,
        operator=operator,
        parents=parents,
        source_digest=source_digest,
        tunables=tunables,
        label=label,
        status=Status(status),
        reason=reason,
        tier=tier,
        code_digest=code_digest,
        score=_interval(found[4:7]),
        latency_us=_interval(found[7:10]),
    )


def _maybe_bool(stored: int | None) -> bool | None:
    return None if stored is None else bool(stored)


def _interval(figures: tuple[Any, ...]) -> Interval | None:
    return (
        None if figures[0] is None else Interval(value=figures[0], low=figures[1], high=figures[2])
    )


def _figures(interval: Interval | None) -> tuple[float | None, float | None, float | None]:
    usable = numbers_only(interval)
    return (usable.value, usable.low, usable.high) if usable else (None, None, None)


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), COMPRESSION)


def _unpacked(data: bytes) -> str:
    return zlib.decompress(data).decode("utf-8", "surrogatepass")
