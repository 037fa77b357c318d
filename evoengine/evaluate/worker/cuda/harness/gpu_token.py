"""The right to use a GPU: one process of ours at a time, of all runs on this machine.

While a sample is taken, nothing else of ours may run on the GPU: no spare that starts, no
reference, no other run.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cupy


class GpuToken:
    """A lock on a file that is named after the GPU; the system frees it when its holder dies."""

    def __init__(self, ordinal: int) -> None:
        bus = cupy.cuda.runtime.deviceGetPCIBusId(ordinal).replace(":", "-")
        path = Path(tempfile.gettempdir()) / f"evoengine-gpu-{os.getuid()}-{bus}.lock"
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        # Who waits for the token holds the turn, so that who gave the token back waits behind.
        self._turn = os.open(path.with_suffix(".turn"), flags, 0o600)
        self._file = os.open(path, flags, 0o600)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Waits for the token and holds it."""
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
