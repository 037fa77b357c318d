"""`evoengine export RUN`: writes the readable files of a run anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evoengine.cli.run_argument import RUNS_DIR


def export(
    run: Annotated[str, typer.Argument(help="The run's name, or the path of its folder.")],
    runs_dir: Annotated[Path, typer.Option(help="Where runs are kept.")] = RUNS_DIR,
) -> None:
    """Write elites/, trials/ and config.yaml of a run anew from its database."""
    from evoengine.cli.run_argument import find_run
    from evoengine.errors import StoreError
    from evoengine.search.run_reader import rebuild

    paths = find_run(run, runs_dir)
    try:
        count = rebuild(paths)
    except OSError as error:
        raise StoreError(
            f"{paths.root}: the readable files cannot be written: {error}; make room or make it"
            " writable, then export again"
        ) from error
    print(f"{paths.root}: elites, {count} trials and config.yaml are written")
