"""Processes that this one started, and theirs: which live, how much memory they had."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

WATCH_S = 0.05


class Memory:
    """Watches the largest peak of memory among the processes that this one started, and theirs."""

    def __init__(self) -> None:
        self.peak_mib = 0.0
        self._ended = threading.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """For as long as the block runs."""
        watch = threading.Thread(target=self._watch)
        watch.start()
        try:
            yield
        finally:
            self._ended.set()
            watch.join()

    def _watch(self) -> None:
        while not self._ended.wait(WATCH_S):
            self.peak_mib = max(
                [self.peak_mib, *(_peak_mib(pid) for pid in descendants(os.getpid()))]
            )


def descendants(root: int) -> list[int]:
    """The processes that `root` started, and theirs."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):  # it ended while we looked
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
    found, fresh = [], {root}
    while fresh := {pid for pid, parent in parents.items() if parent in fresh}:
        found += sorted(fresh)
    return found


def _peak_mib(pid: int) -> float:
    """The largest memory that a process had so far: VmHWM."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0
