"""Opens the folder of a run: its lock and its database."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from types import TracebackType
from typing import Self

from evoengine.errors import StoreError
from evoengine.paths import RunPaths
from evoengine.records import RunInfo
from evoengine.store.faults import translated
from evoengine.store.run_lock import RunLock
from evoengine.store.sqlite import SqliteStore

KNOWN_RUNS_SHOWN = 12


@dataclass(frozen=True)
class RunFolder:
    """An open run; closing it lets the next process in."""

    paths: RunPaths
    store: SqliteStore
    lock: RunLock | None  # None when it is only read

    def close(self) -> None:
        """Closes the database, then the lock; safe more than once."""
        self.store.close()
        if self.lock is not None:
            self.lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def open_run(paths: RunPaths, create: bool = False, read_only: bool = False) -> RunFolder:
    """The run in `paths.root`: a new one with `create`, else the one that is there.

    With `read_only` nothing is locked and nothing written, so a live run can be looked
    at. Raises StoreError, RunLocked, NewerSchema.
    """
    if create:
        with translated(paths.root):
            paths.root.mkdir(parents=True, exist_ok=True)
    elif not paths.database.is_file():
        raise _no_such_run(paths)
    if read_only:
        return RunFolder(paths, SqliteStore(paths.database, read_only=True), None)
    lock = RunLock(paths.lock)
    try:
        return RunFolder(paths, _locked_store(paths, create), lock)
    except BaseException:
        lock.release()
        raise


def _locked_store(paths: RunPaths, create: bool) -> SqliteStore:
    store = SqliteStore(paths.database, create=create)
    try:
        started = store.get(RunInfo) is not None
        if create and started:
            name = paths.root.name
            raise StoreError(
                f"{paths.root}: run {name!r} is already there; continue it with `evoengine resume {name}`, "
                "or choose another name with --run"
            )
        if not create and not started:
            raise StoreError(f"{paths.root}: the run was never started: its description is missing; start it again under the same name")
    except BaseException:
        store.close()
        raise
    return store


def _no_such_run(paths: RunPaths) -> StoreError:
    name, folder = paths.root.name, paths.root.parent
    known = sorted(path.parent.name for path in folder.glob("*/run.db"))
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    more = ", ..." if len(known) > KNOWN_RUNS_SHOWN else ""
    return StoreError(f"no run {name!r} in {folder}{hint} known: {', '.join(known[:KNOWN_RUNS_SHOWN]) or 'none'}{more}")
