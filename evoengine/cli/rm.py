"""`evoengine rm RUN...`: removes runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evoengine.cli.run_argument import RUNS_DIR, RunsDir

if TYPE_CHECKING:
    from evoengine.paths import RunPaths


def rm(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN...", help="Names of runs, or paths of their folders."),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    runs_dir: RunsDir = RUNS_DIR,
) -> None:
    """Remove runs: their databases and exported files.

    A run that is in use and a folder that is not a run are refused. Files that evoengine did not
    write are kept.
    """
    import sys
    from contextlib import ExitStack

    from evoengine.cli import output
    from evoengine.errors import UsageError
    from evoengine.report.format import size
    from evoengine.store.removal import find_run_files
    from evoengine.store.run_lock import RunLock

    with ExitStack() as locks:
        found = {}
        for paths in dict.fromkeys(_checked(text, runs_dir) for text in runs):
            locks.callback(RunLock(paths.lock).release)
            found[paths] = find_run_files(paths)
        for paths, files in found.items():
            output.say(f"{paths.root}: {files.count} files, {size(files.bytes)}")
        if not yes:
            if not sys.stdin.isatty():
                raise UsageError(
                    "expected --yes, because stdin is not a terminal; nothing was removed"
                )
            typer.confirm(
                f"remove {'this run' if len(found) == 1 else f'these {len(found)} runs'}?",
                abort=True,
                err=True,
            )
        for paths, files in found.items():
            left = files.remove()
            kept = f"; kept files that evoengine did not write: {', '.join(left)}" if left else ""
            print(f"removed {paths.root}: {files.count} files, {size(files.bytes)}{kept}")


def _checked(text: str, runs_dir: Path) -> RunPaths:
    """The run that `text` names; raises if there is none or it is a symbolic link."""
    from evoengine.cli.run_argument import find_run
    from evoengine.errors import UsageError
    from evoengine.store.run_folder import open_run

    paths = find_run(text, runs_dir)
    given = Path(text).parent if Path(text).name == paths.database.name else Path(text)
    for place in (paths.root, given, runs_dir / given):
        if place.is_symlink():
            raise UsageError(
                f"{place} is a symbolic link to {place.readlink()}: name the run's own folder, or"
                " remove the link itself"
            )
    if not paths.database.is_file():
        open_run(paths, read_only=True).close()  # raises and names similar runs
    return paths
