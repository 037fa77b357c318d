"""Translates errors of sqlite3 and the file system into StoreError with messages for users."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic_core import PydanticSerializationError

from evoengine.errors import StoreError

_NO_SPACE = "the disk is full; no committed data is lost: free some space, then resume the run"
_NOT_WRITABLE = "it cannot be written; choose another place with --runs-dir, or make it writable"
_CORRUPT = (
    "the database is damaged; restore run.db (with run.db-wal and run.db-shm, where they exist)"
    " from a copy"
)
_BUSY = (
    "another process has locked the database for too long; close other programs that use it, then"
    " try again"
)

# primary result codes, https://www.sqlite.org/rescode.html
_BY_CODE = {
    sqlite3.SQLITE_FULL: _NO_SPACE,
    sqlite3.SQLITE_READONLY: _NOT_WRITABLE,
    sqlite3.SQLITE_PERM: _NOT_WRITABLE,
    sqlite3.SQLITE_CORRUPT: _CORRUPT,
    sqlite3.SQLITE_NOTADB: "it is not a database; a run's run.db was expected here",
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened; check that it is a file and that its folder can be written"
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk failed while it was read or written; check the disk and its free space"
    ),
    sqlite3.SQLITE_NOMEM: "there was not enough memory to read or write it",
    sqlite3.SQLITE_TOOBIG: "a text is too large to be stored",
}

_BY_ERRNO = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EROFS: _NOT_WRITABLE,
    errno.EACCES: _NOT_WRITABLE,
    errno.EPERM: _NOT_WRITABLE,
}


@contextmanager
def translated(path: Path, what: str = "") -> Iterator[None]:
    """Turns errors of sqlite3 and the file system into StoreError naming `path` and `what`."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {sqlite_message(error, what)}") from error
    # for half a surrogate pair, which JSON can spell
    except (UnicodeEncodeError, PydanticSerializationError) as error:
        raise StoreError(f"{path}: {what} holds text that is not Unicode: {error}") from error
    except OSError as error:
        known = _BY_ERRNO.get(error.errno or 0)
        raise StoreError(
            f"{path}: {known + ' ' if known else ''}({error.strerror or error})"
        ) from error


def sqlite_message(error: sqlite3.Error, what: str) -> str:
    """The message for `error`; `what` names the row that was being stored."""
    code = getattr(error, "sqlite_errorcode", None)
    if code in (
        sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
        sqlite3.SQLITE_CONSTRAINT_UNIQUE,
        sqlite3.SQLITE_CONSTRAINT_ROWID,
    ):
        return already_stored(what)
    if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
        return missing_row(what)
    # the low byte of an extended code is its primary one
    known = _BY_CODE.get(code & 0xFF) if code is not None else None
    return (
        f"{known} ({error})"
        if known
        else f"{what + ': ' if what else ''}{type(error).__name__}: {error}"
    )


def already_stored(what: str) -> str:
    """The message for a key that is already taken."""
    return f"{what} is already stored; stored rows are never overwritten"


def missing_row(what: str) -> str:
    """The message for a row whose required row is missing."""
    return (
        f"{what} cannot be stored: a verdict needs the proposal of its trial, a race those of both"
        " trials, a failure its request"
    )
