"""One process works on a run; a second is told who."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from evoengine.command_line import command
from evoengine.errors import RunLocked
from evoengine.store.faults import translated


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
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 32).decode("ascii", "replace").strip()
            who = f"process {holder}" if holder else "another process"
            raise RunLocked(
                f"{path.parent}: {who} is working on this run; wait for it or stop it with Ctrl-C, "
                f"or look at it with `{command('show', path.parent)}`"
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
