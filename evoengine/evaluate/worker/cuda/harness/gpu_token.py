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
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Waits for the token and holds it."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
