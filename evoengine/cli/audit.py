"""`evoengine audit TASK`: tries whether a task's gates refuse what is plainly wrong."""

from __future__ import annotations

from typing import Annotated

import typer

from evoengine.cli import device_option
from evoengine.cli.task_argument import Task


def audit(
    task: Task,
    device: device_option.Device = "auto",
    json: Annotated[bool, typer.Option("--json", help="The rows as JSON on stdout.")] = False,
) -> None:
    """Audit a task: put plainly wrong outputs (zeros, copies of inputs, another seed's output, one
    element off) through its gates, and try whether every input matters. A note says which sizes no
    case has, so that a mistake at the edge of a tile is not checked.

    Exits with 0 if all are refused, else with 3.
    """
    import asyncio

    from evoengine.cli import output
    from evoengine.errors import TaskError
    from evoengine.paths import find_task
    from evoengine.report import as_json
    from evoengine.report.audit_table import audit_table
    from evoengine.search.make_executor import audit_once, find_device
    from evoengine.task.edge_sizes import unchecked_edges
    from evoengine.task.load import load_task

    path = find_task(task).resolve()
    loaded = load_task(path)
    used = find_device(device, loaded)
    if used.brief:
        output.say(f"note: {used.brief}")
    report = asyncio.run(audit_once(loaded, path, used, output.progress()))
    for line in unchecked_edges(loaded):
        output.say(f"note: {line}")
    output.give(json, lambda: as_json.dumps(report.rows), lambda: audit_table(report))
    raise typer.Exit(TaskError.exit_code if report.findings else 0)
