"""`evoengine cache`: shows the size of the cache and prunes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evoengine.cli.cache_files import CacheKind
    from evoengine.report.cache_rows import CacheRows, KindRow

ALL = "all"


def cache(
    prune: Annotated[
        str | None,
        typer.Option(
            metavar="DAYS|all",
            help="Remove files that were not used for DAYS days, or all files.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Show the size of the cache, and prune it.

    The cache keeps compiled code, headers, reference outputs and times of baselines between runs;
    whatever is removed is made again when it is needed. Pruning keeps files that a live run may
    need and files that evoengine did not write.
    """
    from evoengine.cli import output
    from evoengine.errors import StoreError
    from evoengine.paths import cache_dir
    from evoengine.report import as_json
    from evoengine.report.cache_rows import cache_report

    days = None if prune is None else _days(prune)
    folder = cache_dir()
    try:
        rows = _rows(folder, days)
    except OSError as error:
        raise StoreError(f"{folder}: the cache cannot be pruned: {error}") from error
    if rows.in_use:
        output.say(
            "note: a run is live, so compiled code and headers were not pruned; prune again when it"
            " has ended"
        )
    output.give(json, lambda: as_json.dumps(rows), lambda: cache_report(rows))


def _days(text: str) -> float:
    import math

    from evoengine.errors import UsageError

    if text == ALL:
        return -math.inf
    try:
        days = float(text)
    except ValueError:
        days = math.nan
    if not 0 <= days < math.inf:
        raise UsageError(f"expected --prune DAYS or --prune all, got {text!r}, e.g. --prune 30")
    return days


def _rows(folder: Path, days: float | None) -> CacheRows:
    """The contents of the cache, after removing files older than `days` (None: none of them,
    minus infinity: all).
    """
    from evoengine.cli.cache_files import KINDS
    from evoengine.evaluate.compile.cache_lock import CacheLock
    from evoengine.report.cache_rows import CacheRows

    pruned = days is not None and folder.is_dir()
    lock = CacheLock.alone(folder) if pruned else None
    try:
        kinds = tuple(
            _row(kind, folder, days if pruned and (lock or not kind.needed_later) else None)
            for kind in KINDS
        )
    finally:
        if lock:
            lock.release()
    return CacheRows(folder=str(folder), kinds=kinds, pruned=pruned, in_use=pruned and lock is None)


def _row(kind: CacheKind, folder: Path, days: float | None) -> KindRow:
    import time

    from evoengine.cli.cache_files import DAY_S, find_cache_files, remove_cache_files
    from evoengine.report.cache_rows import KindRow

    freed = (0, 0) if days is None else remove_cache_files(kind, folder, time.time() - days * DAY_S)
    files = find_cache_files(kind, folder)
    return KindRow(
        kind=kind.name,
        what=kind.what,
        files=len(files),
        bytes=sum(file.bytes for file in files),
        freed_files=freed[0],
        freed_bytes=freed[1],
        link=str((folder / kind.name).readlink()) if (folder / kind.name).is_symlink() else "",
    )
