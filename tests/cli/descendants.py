"""Who descends from a process, and what each of them was started with, looked at again and again
while it runs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# What a process's command line tells of its part; the first that fits. A worker has the fork
# server's command line.
ROLES = {
    b"evoengine.evaluate.device.fork_server": "fork server",
    b"evoengine.evaluate.compile.nvrtc_worker": "NVRTC",
    b"evoengine.evaluate.compile.clang_worker": "clang's parent",
    b"evoengine.emulator.run.codegen_child": "maker of code",
    b"-cc1": "clang",
}


def children_of(table: dict[int, int], pid: int) -> Iterator[int]:
    """All descendants of `pid`, its children first; `table` has the parent of every process."""
    for child in [process for process, parent in table.items() if parent == pid]:
        yield child
        yield from children_of(table, child)


def parents_of_all() -> dict[int, int]:
    """The parent of every process of this machine."""
    found = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with contextlib.suppress(OSError):
                found[int(path.name)] = int(
                    (path / "stat").read_text().rpartition(")")[2].split()[1]
                )
    return found


@dataclass
class Watch:
    """What was seen of the descendants of one process."""

    pid: int
    canaries: tuple[bytes, ...]
    looks: int = 0
    roles: dict[str, int] = field(default_factory=dict)
    leaks: set[str] = field(default_factory=set)
    privileged: set[str] = field(default_factory=set)
    engine: int = 0

    def look(self) -> None:
        """Once over all that are there now. The engine itself is looked at as soon as it has
        children.
        """
        table = parents_of_all()
        engine = next(
            (
                child
                for child in children_of(table, self.pid)
                if b"\0run\0" in self._read(child, "cmdline")
            ),
            0,
        )
        below = list(children_of(table, engine)) if engine else []
        if below:
            self.engine = engine
            self.looks += 1
        for pid in below:
            self._note(pid, table)
        if below and any(canary in self._read(engine, "environ") for canary in self.canaries):
            self.leaks.add("the engine")

    def _note(self, pid: int, table: dict[int, int]) -> None:
        command = self._read(pid, "cmdline")
        role = next((name for mark, name in ROLES.items() if mark in command), "?")
        if role == "fork server" and b"evoengine.evaluate.device.fork_server" in self._read(
            table[pid], "cmdline"
        ):
            role = "worker"
        self.roles[role] = self.roles.get(role, 0) + 1
        if any(canary in self._read(pid, "environ") for canary in self.canaries):
            self.leaks.add(role)
        if role in ("worker", "maker of code") and b"NoNewPrivs:\t0" in self._read(pid, "status"):
            self.privileged.add(role)

    @staticmethod
    def _read(pid: int, name: str) -> bytes:
        # gone, or the engine, which an ordinary user cannot read
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/{name}").read_bytes()
        return b""
