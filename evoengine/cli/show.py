"""`evoengine show RUN`: prints the results of a run, which may be live."""

from __future__ import annotations

from typing import Annotated

import typer

from evoengine.cli.run_argument import RUNS_DIR, Run, RunsDir

TRIALS_SHOWN = 30  # without --all: as many as fit on a screen


def show(
    run: Run,
    trial: Annotated[
        int | None,
        typer.Option(min=0, help="Show one trial in full: errors of every case, resources, times."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help=f"Show all trials, not only the last {TRIALS_SHOWN}.")
    ] = False,
    source: Annotated[
        bool, typer.Option("--source", help="With --trial: print only the kernel's source.")
    ] = False,
    lessons: Annotated[
        bool,
        typer.Option("--lessons", help="Show what the run has taught: claims with their effects."),
    ] = False,
    runs_dir: RunsDir = RUNS_DIR,
    json: Annotated[
        bool, typer.Option("--json", help="JSON on stdout, always with all trials.")
    ] = False,
) -> None:
    """Show a run: its elites and trials, one trial in full, or its lessons."""
    from evoengine.cli import output
    from evoengine.cli.run_argument import find_run
    from evoengine.errors import UsageError
    from evoengine.report import as_json
    from evoengine.report.lessons_table import lessons_table
    from evoengine.report.run_report import run_report
    from evoengine.report.trial_report import trial_report
    from evoengine.search.run_reader import RunReader

    if lessons and trial is not None:
        raise UsageError("--lessons is about a whole run; leave --trial out")
    if source and trial is None:
        raise UsageError("--source is that of one trial: add --trial N")
    with RunReader(find_run(run, runs_dir)) as reader:
        if lessons:
            found = reader.lessons().all
            output.give(json, lambda: as_json.dumps(found), lambda: lessons_table(found))
        elif trial is None:
            rows = reader.rows()
            output.give(
                json,
                lambda: as_json.dumps(rows),
                lambda: run_report(rows, None if everything else TRIALS_SHOWN),
            )
        else:
            detail = reader.trial(trial)
            if source:
                print(detail.source or "", end="")
            else:
                output.give(json, lambda: as_json.dumps(detail), lambda: trial_report(detail))
