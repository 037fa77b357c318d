"""Removes what a run has written, and nothing else."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from evoengine.errors import StoreError
from evoengine.paths import RunPaths
from evoengine.store.faults import translated
from evoengine.store.migrations import APPLICATION_ID

# https://www.sqlite.org/fileformat.html, the database header
_MAGIC, _PAGES_AT, _APPLICATION_AT = (
    b"SQLite format 3\0",
    28,
    68,
)


@dataclass(frozen=True)
class RunFiles:
    """The files of one run; symbolic links count as themselves and are never followed."""

    paths: RunPaths
    count: int
    bytes: int

    def remove(self) -> list[str]:
        """Removes them, and the folder when nothing else is in it; the names of what else is.
        Raises StoreError.

        The database goes last but for the lock: interrupted, what is left is still a run.
        """
        with translated(self.paths.root):
            for place in _written(self.paths):
                if place.is_dir() and not place.is_symlink():
                    # which follows no link, also when a folder becomes one meanwhile
                    shutil.rmtree(place)
                else:
                    place.unlink(missing_ok=True)
            left = sorted(path.name for path in self.paths.root.iterdir())
            if not left:
                self.paths.root.rmdir()
        return left


def find_run_files(paths: RunPaths) -> RunFiles:
    """What there is to remove of a run; raises StoreError for a folder whose run.db is not one of
    ours.
    """
    with translated(paths.root):
        _refuse_foreign(paths.database)
        sizes = [path.lstat().st_size for path in _below(_written(paths))]
    return RunFiles(paths, len(sizes), sum(sizes))


def _written(paths: RunPaths) -> list[Path]:
    """What a run writes, in the order in which it is removed."""
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
    """A run that was killed early, or is damaged, is a run; a database of something else with
    tables in it is none.
    """
    with database.open("rb") as file:
        head = file.read(_APPLICATION_AT + 4)
    if len(head) < _APPLICATION_AT + 4 or not head.startswith(_MAGIC):
        return
    pages, application = (int.from_bytes(head[at : at + 4]) for at in (_PAGES_AT, _APPLICATION_AT))
    # the first page is there before the first commit of a run
    if application != APPLICATION_ID and pages > 1:
        raise StoreError(
            f"{database}: it is a database, but not one of evoengine: nothing is removed"
        )
