"""The right to use a GPU, among all processes of ours on this machine, of all runs.

While a sample is taken, nothing else of ours may run on the GPU: no reference, no other run. What
is not timed may run beside other work that is not timed. A process may start its context any time:
that is the driver's work, not the device's (`python -m benchmarks.process_starts`).
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cupy

# one place for all: a batch system gives each job a TMPDIR of its own, and both may use one GPU
FOLDER = Path("/tmp")  # noqa: S108 - no link is followed, and the files are their user's own


class GpuToken:
    """Locks on files that are named after the GPU; the system frees them when their holder dies."""

    def __init__(self, ordinal: int) -> None:
        bus = cupy.cuda.runtime.deviceGetPCIBusId(ordinal).replace(":", "-")
        folder = FOLDER if os.access(FOLDER, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
        path = folder / f"evoengine-gpu-{os.getuid()}-{bus}.lock"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        # Who waits for the token holds the turn, so that who gave the token back waits behind.
        self._turn = os.open(path.with_suffix(".turn"), flags, 0o600)
        self._file = os.open(path, flags, 0o600)
        # as many bytes as processes have begun to start; locked by those that have not ended yet
        self._starts = os.open(path.with_suffix(".starts"), flags, 0o600)
        self._is_starting = False
        self._taken = 0  # how often this process has taken or freed memory that it counts itself

    @contextmanager
    def held(self) -> Iterator[None]:
        """Waits until nobody else uses the GPU, and holds it alone."""
        with self._locked(fcntl.LOCK_EX):
            yield

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Waits until nobody holds the GPU alone, and uses it beside others."""
        with self._locked(fcntl.LOCK_SH):
            yield

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for the token that this process holds."""
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        return False

    def offer(self) -> None:
        """Lets those that wait use the GPU, and waits until it can be held alone once more; only
        for who holds it alone.
        """
        fcntl.flock(self._file, fcntl.LOCK_UN)
        self._lock(fcntl.LOCK_EX)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Counts what changes this process's memory, above all the start of its context, while it
        lasts; what is done inside of another one is counted with it.
        """
        if self._is_starting:
            yield
            return
        fcntl.flock(self._starts, fcntl.LOCK_SH)
        os.write(self._starts, b".")
        self._is_starting = True
        try:
            yield
        finally:
            self._is_starting = False
            fcntl.flock(self._starts, fcntl.LOCK_UN)

    @contextmanager
    def taking_memory(self) -> Iterator[None]:
        """As `starting`, but `starts` of this process does not count it, which knows how much."""
        if not self._is_starting:
            self._taken += 1
        with self.starting():
            yield

    def starts(self) -> int | None:
        """How many processes have started so far; None while one is starting.

        The memory of a new context is not what a candidate leaves behind: who compares the memory
        that is free at two moments asks at both.
        """
        try:
            fcntl.flock(self._starts, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        fcntl.flock(self._starts, fcntl.LOCK_UN)
        return os.fstat(self._starts).st_size - self._taken

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        self._lock(kind)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _lock(self, kind: int) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        fcntl.flock(self._file, kind)
        fcntl.flock(self._turn, fcntl.LOCK_UN)
