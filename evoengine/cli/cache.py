"""`evoengine cache`: how large the cache is, and making it smaller."""

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
            help="Remove what was neither read nor written for so many days, or everything.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Show how large the cache is, and prune it.

    Compiled code, headers and reference answers are kept between runs; all of it is made anew when
    it is needed. What a live run may need is left alone, and so is every file that is not ours.
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
            "note: a run is live: its compiled code and headers are left alone; prune again when it"
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
    """What there is, after everything older than `days` was removed (None: nothing, minus infinity:
    everything).
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
