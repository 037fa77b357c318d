"""`evoengine tasks`: lists the packaged tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evoengine.report.rows import TaskRow


def tasks(json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False) -> None:
    """List the packaged tasks."""
    from evoengine.cli import output
    from evoengine.paths import packaged_tasks
    from evoengine.report import as_json
    from evoengine.report.tasks_table import tasks_table

    rows = [_row(path) for path in packaged_tasks()]
    output.give(json, lambda: as_json.dumps(rows), lambda: tasks_table(rows))


def _row(path: Path) -> TaskRow:
    from evoengine.errors import TaskError
    from evoengine.report.rows import TaskRow
    from evoengine.task.domain import label
    from evoengine.task.load import load_task

    try:
        task = load_task(path)
    except TaskError as error:
        return TaskRow(name=path.stem, file=str(path), problem=str(error))
    return TaskRow(
        name=path.stem,
        file=str(path),
        summary=task.summary,
        dims={key: label(dimension) for key, dimension in task.dims.items()},
        tiers=tuple(task.tiers),
        cases=tuple(task.cases),
        target=task.target.arch if task.target else None,
        trials=task.budget.trials,
        kernels=task.seeds_from,
    )
