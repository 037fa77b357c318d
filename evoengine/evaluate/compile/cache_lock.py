"""The lock of the cache: held by any number of processes that use it, or by one that removes from
it.

Machine code and headers are read from the cache long after they were found there, so none may be
removed during a run.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

NAME = "in-use.lock"


class CacheLock:
    """An advisory lock on a cache folder; it ends with its process and is not inherited by exec."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle

    @classmethod
    def shared(cls, folder: Path) -> CacheLock:
        """The lock to read and add with; waits while another process removes.

        A folder that cannot be written needs none.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = _open(folder)
        except OSError:
            return cls(None)
        fcntl.flock(handle, fcntl.LOCK_SH)
        return cls(handle)

    @classmethod
    def alone(cls, folder: Path) -> CacheLock | None:
        """The lock to remove with, of a folder that exists; None while others use it.

        Raises OSError where the folder cannot be written.
        """
        handle = _open(folder)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        return cls(handle)

    def release(self) -> None:
        """Releases the lock; safe more than once."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _open(folder: Path) -> int:
    return os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
