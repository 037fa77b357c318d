"""The SQLite store beyond the contract: the file it leaves, and files that are not right."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from evoengine.errors import NewerSchema, StoreError
from evoengine.protocols import (
    FINAL,
    ChangeRow,
    EndRow,
    PastRace,
    ProposalRow,
    RaceRow,
    ReplyRow,
    Row,
    VerdictRow,
)
from evoengine.records import RaceResult, RunInfo, Unanswered
from evoengine.store import database, sqlite_store
from evoengine.store.migrations import MIGRATIONS, migrate, version_of
from evoengine.store.sqlite_store import PAGE_ROWS, SqliteStore
from tests.store.rows_of_a_run import change, end, info, promising, proposal, race, reply, verdict

ASSETS = Path(__file__).parent / "assets"
FIRST = ASSETS / "v1" / "run.db"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with SqliteStore(tmp_path / "run.db", create=True) as store:
        store.append(info(), proposal(0), verdict(0))
    return tmp_path / "run.db"


def raw(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def test_rows_outlive_the_store(path: Path) -> None:
    with SqliteStore(path) as store:
        assert store.get(RunInfo) == info()
        assert store.get(VerdictRow, 0) == verdict(0)


def test_the_file_is_in_wal_mode_and_commits_are_synchronous(path: Path) -> None:
    with SqliteStore(path) as store:
        pragmas = {
            name: store._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_source_that_many_trials_share_is_stored_once(path: Path) -> None:
    with SqliteStore(path) as store:
        store.append(*(proposal(trial) for trial in range(1, 50)))
        assert store.get(ProposalRow, 49) == proposal(49)
    connection = raw(path)
    assert connection.execute("SELECT count(*) FROM sources").fetchone() == (1,)
    connection.close()


def test_reading_trials_never_reads_sources_and_verdict_bodies(path: Path) -> None:
    connection = raw(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DROP TABLE verdict_bodies")
    connection.execute("DROP TABLE sources")
    connection.close()
    with SqliteStore(path) as store:
        assert [summary.outcome is not None for _, summary in store.trials()] == [True]


def test_trials_beyond_one_page_come_all_and_the_store_can_be_written_meanwhile(path: Path) -> None:
    count = 2 * PAGE_ROWS + 1
    with SqliteStore(path) as store:
        store.append(*(proposal(trial, None) for trial in range(1, count)))
        seen = []
        for trial, _ in store.trials():
            if trial % PAGE_ROWS == 1:
                store.append(reply(trial))
            seen.append(trial)
    assert seen == list(range(count))


@pytest.mark.parametrize("page_rows", [1, 2, 3, 1000])
def test_races_are_with_their_trials_on_every_page(
    path: Path, monkeypatch: pytest.MonkeyPatch, page_rows: int
) -> None:
    monkeypatch.setattr(sqlite_store, "PAGE_ROWS", page_rows)
    with SqliteStore(path) as store:
        store.append(*(proposal(trial, None) for trial in range(1, 8)))
        for trial in (2, 3, 4, 7):
            store.append(race(trial, 0, holder=trial - 1), race(trial, 1))
        store.append(reply(8))  # a page may begin or end with a trial that has no proposal
        found = {trial: summary.races for trial, summary in store.trials()}
    won = RaceResult.won
    assert found == {
        trial: (PastRace(trial - 1, won), PastRace(0, won)) if trial in (2, 3, 4, 7) else ()
        for trial in range(9)
    }


def test_reading_trials_never_reads_the_bodies_of_races(path: Path) -> None:
    with SqliteStore(path) as store:
        store.append(proposal(1), race(1))
    connection = raw(path)
    connection.execute("UPDATE races SET body = x'00'")
    connection.close()
    with SqliteStore(path) as store:
        assert [summary.races for _, summary in store.trials(1)] == [(PastRace(0, RaceResult.won),)]
        with pytest.raises(StoreError, match="RaceRow of trial 1 cannot be read: Error -5"):
            store.get(RaceRow, 1)


def test_several_threads_may_append(path: Path) -> None:
    with SqliteStore(path) as store:

        def append(trial: int) -> None:
            for turn in range(20):
                store.append(reply(trial, turn))

        threads = [threading.Thread(target=append, args=(trial,)) for trial in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.spent().usage.prompt_tokens == 4 * 20 * 100


def test_a_reader_sees_what_a_live_writer_has_committed(path: Path) -> None:
    with SqliteStore(path) as writer, SqliteStore(path, read_only=True) as reader:
        writer.append(proposal(1))
        assert reader.get(ProposalRow, 1) == proposal(1)
        with pytest.raises(
            StoreError, match=r"opened for reading only; the proposal of trial 2 cannot be stored"
        ):
            reader.append(proposal(2))


def test_a_newer_schema_names_both_versions_and_stays_untouched(path: Path) -> None:
    newer = len(MIGRATIONS) + 1
    connection = raw(path)
    connection.execute(f"PRAGMA user_version = {newer}")
    connection.close()
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(
            NewerSchema,
            match=(
                rf"run\.db: has schema version {newer}, but evoengine \S+ knows versions up to"
                rf" {len(MIGRATIONS)}"
            ),
        ):
            SqliteStore(path, read_only=read_only)
    assert path.read_bytes() == before


def test_an_older_schema_is_upgraded_when_written_and_left_alone_when_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = (*MIGRATIONS, ("ALTER TABLE run ADD COLUMN note TEXT NOT NULL DEFAULT ''",))
    monkeypatch.setattr(database, "MIGRATIONS", longer)
    monkeypatch.setattr(database, "migrate", lambda connection: migrate(connection, longer))
    with SqliteStore(path, read_only=True) as store:
        assert store._rows("SELECT note FROM run") == [("",)]
    connection = raw(path)
    assert version_of(connection) == len(MIGRATIONS)
    connection.close()
    with SqliteStore(path) as store:
        assert version_of(store._connection) == len(longer)
        assert store.get(RunInfo) == info()


def test_a_migration_that_fails_leaves_the_old_version(path: Path) -> None:
    connection = raw(path)
    with pytest.raises(sqlite3.OperationalError, match="no such table: absent"):
        migrate(connection, (*MIGRATIONS, ("CREATE TABLE more (x)", "DROP TABLE absent")))
    assert version_of(connection) == len(MIGRATIONS)
    assert connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE name = 'more'"
    ).fetchone() == (0,)
    connection.close()


def test_a_database_of_version_1_opens_and_reads(tmp_path: Path) -> None:
    copy = tmp_path / "run.db"
    copy.write_bytes(FIRST.read_bytes())
    with SqliteStore(copy, read_only=True) as store:
        assert store.get(RunInfo) == info()
    with SqliteStore(copy) as store:
        assert store.get(ProposalRow, 1) == proposal(1)
        assert store.get(VerdictRow, 1, 1) == verdict(1, 1)
        assert [trial for trial, _ in store.trials()] == [0, 1, 2, 3]
        assert store.spent().usage.cost_usd == 0.5
        store.append(proposal(4))


def test_every_version_of_the_schema_has_a_database_that_opens_and_reads(tmp_path: Path) -> None:
    for version in range(1, len(MIGRATIONS) + 1):
        copy = tmp_path / f"{version}.db"
        copy.write_bytes((ASSETS / f"v{version}" / "run.db").read_bytes())
        with SqliteStore(copy) as store:
            assert [trial for trial, _ in store.trials()] == [0, 1, 2, 3]
            assert store.spent().unanswered == Unanswered(
                requests=int(version > 1),
                most_usd=0.5 * (version > 1),
                most_tokens=900 * (version > 3),
                uncounted=int(version in (2, 3)),
            )
            assert store.get(ChangeRow) == (None if version == 1 else change(0))
            assert store.get(EndRow) == (None if version < 4 else end(0))
            races = [] if version < 3 else [race(1, 0, result=RaceResult.void), race(1, 1)]
            assert [row for number in (0, 1) if (row := store.get(RaceRow, 1, number))] == races
            assert store.get(VerdictRow, 1, FINAL) == (None if version < 3 else verdict(1, FINAL))
            assert store.get(VerdictRow, 1) == (
                verdict(1) if version < 3 else promising(verdict(1))
            )
            assert [summary.promising for _, summary in store.trials()] == (
                [None] * 4 if version < 3 else [True, True, False, True]
            )
            store.append(race(3, 0, holder=1))  # in every version, once it is upgraded
            assert dict(store.trials())[3].races == (PastRace(1, RaceResult.won),)


def _locks(path: Path) -> int:
    """How many locks this process holds on the file."""
    inode, own = f":{path.stat().st_ino} ", f" {os.getpid()} "
    return sum(
        inode in line and own in line for line in Path("/proc/locks").read_text().splitlines()
    )


def test_a_reader_beside_a_writer_does_not_take_the_locks_of_their_process_away(path: Path) -> None:
    """Without them another program that looks at the file would take away the log that is
    written.
    """
    with SqliteStore(path) as writer:
        writer.append(proposal(1))
        before = _locks(path)
        with SqliteStore(path, read_only=True) as reader:
            assert reader.get(ProposalRow, 1)
        writer.append(proposal(2))
        assert _locks(path) == before >= 1


def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    path.write_bytes(b"not a database at all " * 100)
    with pytest.raises(
        StoreError, match=r"run\.db: it is not a database; a run's run\.db was expected here"
    ):
        SqliteStore(path)


def test_another_programs_database_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    connection = raw(path)
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(
        StoreError,
        match="the database is not evoengine's: expected application_id 1163284293, got 0",
    ):
        SqliteStore(path, create=True)
    assert path.read_bytes() == before


def test_a_damaged_database_is_reported(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)
    with (
        SqliteStore(path) as store,
        pytest.raises(StoreError, match=r"run\.db: the database is damaged; restore run\.db"),
    ):
        list(store.trials())


def test_a_damaged_body_names_the_trial(path: Path) -> None:
    connection = raw(path)
    connection.execute("UPDATE verdict_bodies SET body = x'00'")
    connection.close()
    with (
        SqliteStore(path) as store,
        pytest.raises(StoreError, match="VerdictRow of trial 0 cannot be read: Error -5"),
    ):
        store.get(VerdictRow, 0)


def test_text_that_is_not_unicode_is_kept_in_a_reply_and_refused_elsewhere(path: Path) -> None:
    half = "\ud800"
    answer = reply(1).reply.model_copy(update={"text": half})
    unspeakable: list[Row] = [
        ProposalRow(1, proposal(1).proposal.model_copy(update={"insight": half})),
        ProposalRow(1, proposal(1).proposal.model_copy(update={"source": half})),
        VerdictRow(0, 1, verdict(0).verdict.model_copy(update={"reason": half})),
        VerdictRow(0, 1, verdict(0).verdict.model_copy(update={"detail": half})),
    ]
    with SqliteStore(path) as store:
        store.append(ReplyRow(1, 0, answer))
        assert store.get(ReplyRow, 1) == ReplyRow(1, 0, answer)
        for row in unspeakable:
            with pytest.raises(StoreError, match=r"of trial \d holds text that is not Unicode"):
                store.append(row)
        assert [trial for trial, _ in store.trials()] == [0, 1]


def test_a_missing_database_and_an_empty_one_have_different_messages(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"run\.db: no such file; expected the run.db of a run"):
        SqliteStore(tmp_path / "run.db")
    (tmp_path / "run.db").touch()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="the database is empty: the run was never started"):
            SqliteStore(tmp_path / "run.db", read_only=read_only)
    SqliteStore(tmp_path / "run.db", create=True).close()


def test_a_database_that_stays_locked_is_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    other = raw(path)
    with SqliteStore(path) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StoreError, match="another process has locked the database for too long"
        ):
            store.append(proposal(1))
        other.execute("ROLLBACK")
        store.append(proposal(1))
    other.close()
