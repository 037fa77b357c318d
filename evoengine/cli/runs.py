"""`evoengine runs`: lists the runs in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evoengine.cli.run_argument import RUNS_DIR, RunsDir

if TYPE_CHECKING:
    from evoengine.paths import RunPaths
    from evoengine.report.run_list import RunListRow


def runs(
    runs_dir: RunsDir = RUNS_DIR,
    json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """List the runs: task, best elites, trials, state, start time.

    The latest run comes last. Folders without a run are left out; a run that cannot be read is
    listed with the reason.
    """
    from evoengine.cli import output
    from evoengine.report import as_json
    from evoengine.report.run_list import runs_table

    rows = sorted(
        (_row(paths) for paths in _folders(runs_dir)), key=lambda row: (row.begun, row.name)
    )
    if not rows:
        output.say(
            f"no runs in {runs_dir}; `evoengine run TASK` starts one, --runs-dir chooses another"
            " folder"
        )
    if rows or json:
        output.give(json, lambda: as_json.dumps(rows), lambda: runs_table(rows))


def _folders(runs_dir: Path) -> Iterator[RunPaths]:
    """The folders that hold any file of a run."""
    from evoengine.errors import StoreError
    from evoengine.paths import RunPaths
    from evoengine.store.faults import translated

    if runs_dir.exists() and not runs_dir.is_dir():
        raise StoreError(
            f"{runs_dir}: expected a folder that holds runs, found a file; choose another folder"
            " with --runs-dir"
        )
    with translated(runs_dir):
        found = sorted(runs_dir.iterdir()) if runs_dir.exists() else []
    for folder in found:
        paths = RunPaths(folder)
        if any(_is_there(path) for path in (paths.database, paths.lock, paths.elites)):
            yield paths


def _is_there(path: Path) -> bool:
    """Whether `path` exists; True also if its folder may not be searched, because reading it then
    reports why.
    """
    try:
        path.lstat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _row(paths: RunPaths) -> RunListRow:
    from pydantic import ValidationError

    from evoengine.errors import EvoError
    from evoengine.report.run_list import RunListRow, RunState
    from evoengine.store.run_lock import holder_of

    holder = ""
    try:
        holder = holder_of(paths.lock) or ""
        return _read(paths, holder)
    except (EvoError, ValidationError, OSError) as error:
        problem = (
            " ".join(str(error).split())
            .removeprefix(f"{paths.root}: ")
            .removeprefix(f"{paths.database}: ")
        )
        state = RunState.running if holder else RunState.unreadable
        return RunListRow(
            name=paths.root.name,
            folder=str(paths.root),
            state=state,
            holder=holder,
            problem=problem,
        )


def _read(paths: RunPaths, holder: str) -> RunListRow:
    from evoengine.errors import StoreError
    from evoengine.records import RunInfo
    from evoengine.report.run_list import RunListRow, RunState
    from evoengine.search.run_reader import RunReader

    if not paths.database.is_file():
        raise StoreError("run.db is missing, but other files of a run are there")
    with RunReader(paths) as reader:
        if reader.folder.store.get(RunInfo) is None:
            raise StoreError(
                "its device is starting"
                if holder
                else "the run was never started; start it again under the same name"
            )
        rows = reader.rows(with_trials=False)
    open_elites = any(elite.awaits_final for elite in rows.elites)
    has_ended = rows.settled >= rows.budget or (rows.ended_by and rows.ended_by.is_complete)
    complete = has_ended and not open_elites
    ended = RunState.complete if complete else RunState.stopped
    return RunListRow(
        name=paths.root.name,
        folder=str(paths.root),
        state=RunState.running if holder else ended,
        holder=holder,
        task=rows.task,
        generator=rows.generator,
        device=rows.device,
        begun=rows.created,
        settled=rows.settled,
        budget=rows.budget,
        best=tuple(elite for elite in rows.elites if elite.place == 1),
    )
