"""`evoengine export RUN`: rewrites the readable files of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evoengine.cli.run_argument import RUNS_DIR


def export(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The run's name, or the path of its folder.")
    ],
    runs_dir: Annotated[Path, typer.Option(help="The folder of runs.")] = RUNS_DIR,
) -> None:
    """Rewrite elites/, trials/ and config.yaml of a run from its database."""
    from evoengine.cli.run_argument import find_run
    from evoengine.errors import StoreError
    from evoengine.search.run_reader import rewrite_files

    paths = find_run(run, runs_dir)
    try:
        count = rewrite_files(paths)
    except OSError as error:
        raise StoreError(
            f"{paths.root}: the readable files cannot be written: {error}; free some space or"
            " make the folder writable, then export again"
        ) from error
    print(f"{paths.root}: wrote elites/, trials/ ({count} trials) and config.yaml")
