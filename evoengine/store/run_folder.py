"""Opens the folder of a run: its lock and its database."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from evoengine.command_line import command
from evoengine.errors import StoreError, hint, nearest
from evoengine.paths import RunPaths
from evoengine.records import RunInfo
from evoengine.store.faults import translated
from evoengine.store.run_lock import RunLock
from evoengine.store.sqlite_store import SqliteStore

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_run(paths: RunPaths, create: bool = False, read_only: bool = False) -> RunFolder:
    """The run in `paths.root`: a new one with `create`, else the one that is there.

    With `read_only` nothing is locked and nothing written, so a live run can be looked
    at. Raises StoreError, RunLocked, NewerSchema.
    """
    with translated(paths.root):
        _refuse_place(paths)
        if not _has_data(paths.database):
            _refuse_orphans(paths)
        if create:
            paths.root.mkdir(parents=True, exist_ok=True)
        elif not paths.database.is_file():
            raise _no_such_run(paths)
    if read_only:
        return RunFolder(paths, _read_store(paths), None)
    lock = RunLock(paths.lock)
    try:
        return RunFolder(paths, _locked_store(paths, create), lock)
    except BaseException:
        lock.release()
        raise


def _read_store(paths: RunPaths) -> SqliteStore:
    store = SqliteStore(paths.database, read_only=True)
    try:
        if store.get(RunInfo) is None:
            _refuse_orphans(paths)
    except BaseException:
        store.close()
        raise
    return store


def _locked_store(paths: RunPaths, create: bool) -> SqliteStore:
    store = SqliteStore(paths.database, create=create)
    try:
        started = store.get(RunInfo) is not None
        if create and started:
            raise StoreError(
                f"{paths.root}: run {paths.root.name!r} is already there; continue it with"
                f" `{command('resume', paths.root)}`, or choose another name with --run"
            )
        if not started:
            _refuse_orphans(paths)
        if not create and not started:
            raise StoreError(
                f"{paths.root}: the run was never started: its description is missing; start it"
                " again under the same name"
            )
    except BaseException:
        store.close()
        raise
    return store


def _refuse_place(paths: RunPaths) -> None:
    """Raises StoreError when something on the way to the run's folder is a file."""
    place = next(
        place for place in (paths.root, *paths.root.parents) if place.exists() or place.is_symlink()
    )
    if not place.is_dir():
        what = "the folder of a run" if place == paths.root else "a folder that holds runs"
        raise StoreError(
            f"{place}: expected {what}, found {_kind(place)}; choose another place with --runs-dir,"
            " or move it away"
        )


def _kind(place: Path) -> str:
    return (
        "a file" if place.is_file() else "a link to nothing" if place.is_symlink() else "no folder"
    )


def _has_data(database: Path) -> bool:
    return database.is_file() and database.stat().st_size > 0


def _refuse_orphans(paths: RunPaths) -> None:
    """Raises StoreError when files of a run are there whose database is not: a new run would delete
    them.
    """
    found = {
        folder.name: sum(1 for file in folder.rglob("*") if not file.is_dir())
        for folder in (paths.elites, paths.trials)
    }
    held = [
        f"{name}/ holds {count} file{'' if count == 1 else 's'}"
        for name, count in found.items()
        if count
    ]
    if held:
        state = (
            "is missing"
            if not paths.database.exists()
            else "holds no run"
            if _has_data(paths.database)
            else "is empty (0 bytes)"
        )
        raise StoreError(
            f"{paths.root}: {paths.database.name} {state}, but {' and '.join(held)}: the database"
            f" of this run is lost; restore {paths.database.name} (with run.db-wal, where there is"
            " one) from a copy; a new run under this name would delete these files: choose another"
            " one with --run, or move them away"
        )


def _no_such_run(paths: RunPaths) -> StoreError:
    name, folder = paths.root.name, paths.root.parent
    known = sorted(path.parent.name for path in folder.glob("*/run.db"))
    near = nearest(name, known)
    shows = f"; `{command('show', folder / near)}` shows it" if near else ""
    listed = hint(name, known, most=KNOWN_RUNS_SHOWN)
    return StoreError(f"no run {name!r} in {folder}{listed}{shows}")
