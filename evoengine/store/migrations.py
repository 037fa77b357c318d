"""The tables of run.db, version by version.

A database carries its version in `PRAGMA user_version`. Migration n turns version n - 1
into version n; released migrations are never edited, only followed by new ones, and one
database of every version is kept among the tests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

APPLICATION_ID = 0x45564F45  # "EVOE": tells our databases from others

Migration = tuple[str, ...]

# What a fold over the run reads (proposals, verdicts) is kept apart from what is bulky
# (sources, verdict_bodies), so that folding never turns the pages of the bulk.
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

MIGRATIONS: tuple[Migration, ...] = (_VERSION_1,)


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of a database; 0 when nothing was ever put into it."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Brings a database to the latest of `migrations` in one transaction: killed half-way, it keeps its old version."""
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
