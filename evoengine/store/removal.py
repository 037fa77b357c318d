"""Removes the files that a run has written, and no others."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from evoengine.errors import StoreError
from evoengine.paths import RunPaths
from evoengine.store.faults import translated
from evoengine.store.migrations import APPLICATION_ID

# https://www.sqlite.org/fileformat.html, the database header
_MAGIC = b"SQLite format 3\0"
_PAGES_AT, _APPLICATION_AT = 28, 68


@dataclass(frozen=True)
class RunFiles:
    """The files of one run; symbolic links are never followed."""

    paths: RunPaths
    count: int
    bytes: int

    def remove(self) -> list[str]:
        """Removes the files, and the folder if it is empty then; returns the names of other
        files in it. Raises StoreError.

        The database is removed last, except for the lock: if interrupted, the rest is still a run.
        """
        with translated(self.paths.root):
            for place in _written(self.paths):
                if place.is_dir() and not place.is_symlink():
                    # rmtree follows no link, even if a folder is replaced by one meanwhile
                    shutil.rmtree(place)
                else:
                    place.unlink(missing_ok=True)
            left = sorted(path.name for path in self.paths.root.iterdir())
            if not left:
                self.paths.root.rmdir()
        return left


def find_run_files(paths: RunPaths) -> RunFiles:
    """The files to remove of a run; raises StoreError if run.db is another program's database."""
    with translated(paths.root):
        _refuse_foreign(paths.database)
        sizes = [path.lstat().st_size for path in _below(_written(paths))]
    return RunFiles(paths, len(sizes), sum(sizes))


def _written(paths: RunPaths) -> list[Path]:
    """The files and folders that a run writes, in the order of removal."""
    log, index = (
        paths.database.with_name(f"{paths.database.name}-{kind}") for kind in ("wal", "shm")
    )
    return [
        paths.trial(0).parent,
        paths.elites,
        paths.config,
        index,
        log,
        paths.database,
        paths.lock,
    ]


def _below(places: list[Path]) -> list[Path]:
    """All files at and below `places`."""
    found = []
    for place in places:
        if place.is_symlink() or not place.is_dir():
            found += [place] if place.is_symlink() or place.exists() else []
        else:
            found += _below(sorted(place.iterdir()))
    return found


def _refuse_foreign(database: Path) -> None:
    """Raises StoreError for another program's database that has tables; a damaged run.db, or one
    of a run that was killed early, is accepted.
    """
    with database.open("rb") as file:
        head = file.read(_APPLICATION_AT + 4)
    if len(head) < _APPLICATION_AT + 4 or not head.startswith(_MAGIC):
        return
    pages, application = (int.from_bytes(head[at : at + 4]) for at in (_PAGES_AT, _APPLICATION_AT))
    # before the first commit of a run the database has one page
    if application != APPLICATION_ID and pages > 1:
        raise StoreError(f"{database}: the database is not evoengine's; nothing was removed")
