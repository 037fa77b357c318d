"""The schema of run.db, version by version.

A database stores its version in `PRAGMA user_version`. Migration n turns version n - 1
into version n. Released migrations are never edited, only followed by new ones; the tests
keep one database of every version.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

APPLICATION_ID = 0x45564F45  # "EVOE": marks our databases

Migration = tuple[str, ...]

# Small rows that a pass over the run reads (proposals, verdicts) are apart from large ones
# (sources, verdict_bodies), so that such a pass never reads the pages of the large ones.
_VERSION_1: Migration = (
    """CREATE TABLE run (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        body TEXT NOT NULL  -- RunInfo as JSON
    )""",
    """CREATE TABLE sources (
        digest TEXT PRIMARY KEY NOT NULL,
        body BLOB NOT NULL  -- zlib of the UTF-8 text
    )""",
    """CREATE TABLE replies (
        trial INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        cost_usd REAL NOT NULL,
        model TEXT NOT NULL,
        finish_reason TEXT NOT NULL,
        prompt BLOB NOT NULL,  -- zlib
        text BLOB NOT NULL,  -- zlib
        PRIMARY KEY (trial, turn)
    )""",
    """CREATE TABLE proposals (
        trial INTEGER PRIMARY KEY,
        operator TEXT NOT NULL,
        parents TEXT NOT NULL,  -- JSON list
        source_digest TEXT REFERENCES sources (digest),
        tunables TEXT NOT NULL,  -- JSON object
        label TEXT NOT NULL,
        problem TEXT NOT NULL,
        insight TEXT NOT NULL
    )""",
    """CREATE TABLE verdicts (
        trial INTEGER NOT NULL REFERENCES proposals (trial),
        round INTEGER NOT NULL,
        status TEXT NOT NULL,
        reason TEXT NOT NULL,
        tier TEXT NOT NULL,
        code_digest TEXT NOT NULL,
        score_value REAL, score_low REAL, score_high REAL,
        latency_value_us REAL, latency_low_us REAL, latency_high_us REAL,
        PRIMARY KEY (trial, round)
    ) WITHOUT ROWID""",
    """CREATE TABLE verdict_bodies (
        trial INTEGER NOT NULL,
        round INTEGER NOT NULL,
        body BLOB NOT NULL,  -- zlib of the whole Verdict as JSON
        PRIMARY KEY (trial, round),
        FOREIGN KEY (trial, round) REFERENCES verdicts (trial, round)
    )""",
)

# Requests to a model, stored before they are sent; requests that failed; settings changed by a
# resume; and when trials began and verdicts ended.
_VERSION_2: Migration = (
    """CREATE TABLE requests (
        trial INTEGER NOT NULL,
        number INTEGER NOT NULL,  -- counts the requests of a trial from 0, over all turns
        turn INTEGER NOT NULL,
        most_usd REAL,  -- the most that its answer can cost; NULL where the price is unknown
        sent TEXT NOT NULL,  -- ISO 8601, UTC
        PRIMARY KEY (trial, number)
    ) WITHOUT ROWID""",
    """CREATE TABLE request_failures (
        trial INTEGER NOT NULL,
        number INTEGER NOT NULL,
        maybe_paid INTEGER NOT NULL,  -- whether the endpoint may charge for it
        reason TEXT NOT NULL,
        PRIMARY KEY (trial, number),
        FOREIGN KEY (trial, number) REFERENCES requests (trial, number)
    ) WITHOUT ROWID""",
    """CREATE TABLE changes (
        number INTEGER PRIMARY KEY,  -- from 0
        body TEXT NOT NULL  -- SettingsChange as JSON
    )""",
    # ISO 8601, UTC; '' where an earlier version stored none
    "ALTER TABLE verdicts ADD COLUMN began TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE verdicts ADD COLUMN ended TEXT NOT NULL DEFAULT ''",
)

# Races for places, and whether a trial is to be verified, which is decided with its first verdict.
_VERSION_3: Migration = (
    """CREATE TABLE races (
        trial INTEGER NOT NULL REFERENCES proposals (trial),
        number INTEGER NOT NULL,  -- counts the races of a trial from 0
        holder INTEGER NOT NULL REFERENCES proposals (trial),
        result TEXT NOT NULL,
        began TEXT NOT NULL,  -- ISO 8601, UTC
        ended TEXT NOT NULL,
        body BLOB NOT NULL,  -- zlib of the whole Race as JSON
        PRIMARY KEY (trial, number)
    )""",
    # NULL for a later verdict of a trial, and where an earlier version stored none
    "ALTER TABLE verdicts ADD COLUMN promising INTEGER",
)

# How the processes of a run ended, and the most tokens of a request.
_VERSION_4: Migration = (
    """CREATE TABLE ends (
        number INTEGER PRIMARY KEY,  -- from 0
        body TEXT NOT NULL  -- RunEnd as JSON
    )""",
    # NULL where an earlier version stored none
    "ALTER TABLE requests ADD COLUMN most_tokens INTEGER",
)

MIGRATIONS: tuple[Migration, ...] = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4)


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of a database; 0 for a new one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Applies the missing `migrations` in one transaction: if killed half-way, the database keeps
    its old version.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, migration in enumerate(migrations, start=1):
            if number > version_of(connection):
                for statement in migration:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
