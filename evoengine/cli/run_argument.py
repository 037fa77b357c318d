"""The RUN argument: a name under the runs directory, or a path; and that directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evoengine.paths import RunPaths

RUNS_DIR = Path("runs")

Run = Annotated[
    str, typer.Argument(metavar="RUN", help="The run's name, or the path of its folder.")
]
RunsDir = Annotated[Path, typer.Option(help="The folder of runs.")]


def find_run(text: str, runs_dir: Path) -> RunPaths:
    """The folder that `text` names; it may not hold a run: opening it reports that, with similar
    names.
    """
    from evoengine.errors import UsageError
    from evoengine.paths import RunPaths

    if not text.strip():
        raise UsageError(
            "expected the name of a run or the path of its folder, got an empty string"
        )
    given = Path(text)
    if given.name == "run.db":
        given = given.parent
    is_path = given.is_absolute() or len(given.parts) > 1 or given.parts in ((), ("..",))
    by_name = runs_dir / given
    if is_path or (not (by_name / "run.db").is_file() and (given / "run.db").is_file()):
        return RunPaths(given.resolve())
    return RunPaths(by_name)
