"""Opens run.db: checks that it is ours and migrates it to the latest schema."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from evoengine import __version__
from evoengine.errors import NewerSchema, StoreError
from evoengine.store.faults import translated
from evoengine.store.migrations import APPLICATION_ID, MIGRATIONS, migrate, version_of
from evoengine.store.write_ahead_log import log_of, refuse_damaged_log

# another program that reads the file locks it only for a moment
BUSY_TIMEOUT_S = 10.0


def open_database(path: Path, create: bool, read_only: bool) -> sqlite3.Connection:
    """A connection to the run.db at `path` with the latest schema; raises StoreError, or
    NewerSchema.

    `create` also accepts a missing or empty file: a run that was killed before its first commit
    leaves an empty one. With `read_only` the file is not changed.
    """
    if not create and not path.is_file():
        raise StoreError(f"{path}: no such file; expected the run.db of a run")
    refuse_damaged_log(path)
    with translated(path):
        _refuse_lost_database(path)
        connection = _connect(path, create, read_only)
        try:
            version = _checked_version(connection, path, create)
            if read_only:
                return connection if version == len(MIGRATIONS) else _migrated_copy(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if version < len(MIGRATIONS):
                migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _refuse_lost_database(path: Path) -> None:
    """Raises StoreError for a log without its database: it holds commits, and SQLite deletes the
    log of an empty database.
    """
    log = log_of(path)
    if (
        (path.stat().st_size if path.exists() else 0) == 0
        and log.exists()
        and (held := log.stat().st_size)
    ):
        raise StoreError(
            f"{path}: expected the database of {log.name}, got"
            f" {'an empty file' if path.exists() else 'no file'}: {log.name} holds {held} bytes,"
            f" and starting a new database would delete them; restore {path.name} from a copy, or"
            " choose another name with --run"
        )


def _connect(path: Path, create: bool, read_only: bool) -> sqlite3.Connection:
    mode = "ro" if read_only else "rwc" if create else "rw"
    # a database without a log in a read-only folder can be opened only as immutable
    immutable = read_only and not log_of(path).exists() and not os.access(path.parent, os.W_OK)
    uri = f"{path.absolute().as_uri()}?mode={mode}{'&immutable=1' if immutable else ''}"
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )


def _checked_version(connection: sqlite3.Connection, path: Path, create: bool) -> int:
    """The schema version; raises StoreError if the database is not ours, NewerSchema if too new."""
    version = version_of(connection)
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    empty = (
        version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0
    )
    if empty and not create:
        raise StoreError(
            f"{path}: the database is empty: the run was never started; start it again under the"
            " same name"
        )
    if not empty and application != APPLICATION_ID:
        raise StoreError(
            f"{path}: the database is not evoengine's: expected application_id"
            f" {APPLICATION_ID}, got {application}"
        )
    if version > len(MIGRATIONS):
        raise NewerSchema(
            f"{path}: has schema version {version}, but evoengine {__version__} knows versions up"
            f" to {len(MIGRATIONS)}; a later evoengine wrote it: use that one, or upgrade this one"
        )
    return version


def _migrated_copy(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A copy in memory with the latest schema; closes `connection`."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.backup(copy)
    connection.close()
    migrate(copy)
    return copy
