"""One process works on a run; a second is told who."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from evoengine.command_line import command
from evoengine.errors import RunLocked
from evoengine.store.faults import translated

# `holder_of` has the lock for microseconds: so often, and so long, one who wants it tries again
LOOKERS, LOOK_S = (
    5,
    0.02,
)


class RunLock:
    """An advisory lock that dies with its process, however that ends.

    The file stays behind on purpose: removing it would let two processes lock two files
    of one name. It is not passed on through exec; a plain fork would keep it held.
    """

    def __init__(self, path: Path) -> None:
        """Takes the lock; raises RunLocked naming the process that has it."""
        with translated(path):
            self._handle: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                self._take(path, self._handle)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """Lets others in; safe more than once."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    @staticmethod
    def _take(path: Path, handle: int) -> None:
        if not _patiently_locked(handle):
            raise RunLocked(
                f"{path.parent}: {_written_in(handle)} is working on this run; wait for it or stop"
                f" it with Ctrl-C, or look at it with `{command('show', path.parent)}`"
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)


def holder_of(path: Path) -> str | None:
    """Who works on the run whose lock is at `path`, e.g. `process 4711`; None where nobody does.
    Writes nothing.
    """
    with translated(path):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return None if _locked(handle, fcntl.LOCK_SH) else _written_in(handle)
        finally:
            os.close(handle)


def _patiently_locked(handle: int) -> bool:
    for _ in range(LOOKERS):
        if _locked(handle, fcntl.LOCK_EX):
            return True
        time.sleep(LOOK_S)
    return False


def _locked(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _written_in(handle: int) -> str:
    holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
    return f"process {holder}" if holder else "another process"
