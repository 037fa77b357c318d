"""`evoengine resume RUN`: goes on with a run that was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evoengine.cli.run_argument import RUNS_DIR


def resume(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="The run's name, or the path of its folder.")],
    runs_dir: Annotated[Path, typer.Option(help="Where runs are kept.")] = RUNS_DIR,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON on stdout.")] = False,
) -> None:
    """Go on with a run that was stopped or killed; its settings are stored with it."""
    from evoengine import wiring
    from evoengine.cli.run_argument import find_run
    from evoengine.cli.search import search

    paths = find_run(run, runs_dir)
    raise typer.Exit(search(paths, lambda observe, stop, drop: wiring.resume_run(paths, observe, stop, drop, context.obj), json))
