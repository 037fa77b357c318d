"""Whether processes that a test started still run."""

from __future__ import annotations

import time
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def still_alive(pids: list[int], within_s: float = 20.0) -> list[int]:
    """Those that run after so long; returns as soon as there are none. A killed process ends when
    it is scheduled, which takes long on a busy machine.
    """
    until = time.monotonic() + within_s
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < until:
        time.sleep(0.02)
    return left
