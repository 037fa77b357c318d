"""`evoengine tasks`: the packaged tasks."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def tasks(json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False) -> None:
    """List the packaged tasks."""
    from evoengine import task as task_files
    from evoengine.cli import output
    from evoengine.paths import packaged_tasks
    from evoengine.report import as_json
    from evoengine.report.tables import tasks_table

    rows: list[dict[str, Any]] = []
    for path in packaged_tasks():
        task = task_files.load(path)
        rows.append(
            {
                "name": path.stem,
                "summary": task.summary,
                "tiers": list(task.tiers),
                "cases": list(task.cases),
                "target": task.target.arch if task.target else None,
                "trials": task.budget.trials,
                "kernels": list(task.seeds_from),
                "file": str(path),
            }
        )
    output.give(json, lambda: as_json.dumps(rows), lambda: tasks_table(rows))
