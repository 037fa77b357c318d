"""`evoengine export RUN`: rewrites the readable files of a run."""

from __future__ import annotations

from evoengine.cli.run_argument import RUNS_DIR, Run, RunsDir


def export(
    run: Run,
    runs_dir: RunsDir = RUNS_DIR,
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
