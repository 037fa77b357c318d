"""The lock of a run: only one process works on it; an error names that process."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from evoengine.command_line import command
from evoengine.errors import RunLocked
from evoengine.store.faults import translated

# `holder_of` takes the lock for microseconds, so a process that wants it tries again
LOCK_ATTEMPTS, LOCK_RETRY_S = 5, 0.02


class RunLock:
    """An advisory lock that is released when its process ends, however that happens.

    The file is never removed, or two processes could lock two files of the same name. The lock is
    not inherited through exec, but a forked process would keep it.
    """

    def __init__(self, path: Path) -> None:
        """Takes the lock; raises RunLocked naming the process that holds it."""
        with translated(path):
            self._handle: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                self._take(path, self._handle)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """Releases the lock; safe more than once."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    @staticmethod
    def _take(path: Path, handle: int) -> None:
        if not _locked_with_retries(handle):
            raise RunLocked(
                f"{path.parent}: {_holder_in(handle)} is working on this run; wait for it, stop"
                f" it with Ctrl-C, or read the run with `{command('show', path.parent)}`"
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)


def holder_of(path: Path) -> str | None:
    """The process that works on the run with the lock at `path`, e.g. `process 4711`; None if there
    is none. Writes nothing.
    """
    with translated(path):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return None if _locked(handle, fcntl.LOCK_SH) else _holder_in(handle)
        finally:
            os.close(handle)


def _locked_with_retries(handle: int) -> bool:
    for _ in range(LOCK_ATTEMPTS):
        if _locked(handle, fcntl.LOCK_EX):
            return True
        time.sleep(LOCK_RETRY_S)
    return False


def _locked(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder_in(handle: int) -> str:
    holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
    return f"process {holder}" if holder else "another process"
