"""`evoengine profile KERNEL.cu --task TASK`: what Nsight Compute measures of each launch."""

from __future__ import annotations

from typing import Annotated

import typer

REFUSED = 1


def profile(
    kernel: Annotated[
        str,
        typer.Argument(metavar="KERNEL.cu", help="A kernel file, or the name of a packaged one."),
    ],
    task: Annotated[str, typer.Option(help="A task file, or the name of a packaged task.")],
    case: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One case; by default those that the task times."),
    ] = None,
    chosen: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set a tunable to any whole number; repeatable."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The figures as JSON on stdout.")] = False,
) -> None:
    """Profile one kernel with Nsight Compute (ncu): time, pipes, memory, occupancy, and why warps
    waited, of each launch. Needs a GPU.

    Exits with 6 without ncu, with 11 if the driver refuses its counters to this user.
    """
    from evoengine.cli import output
    from evoengine.cli.evaluate import read_tuned
    from evoengine.evaluate.cuda_tool import NCU
    from evoengine.evaluate.tool_runs import chosen_cases
    from evoengine.paths import find_task
    from evoengine.records import KernelProfile, Verdict
    from evoengine.report import as_json
    from evoengine.report.tool_reports import profile_report
    from evoengine.search.tool_session import tool_session
    from evoengine.task.load import load_task

    path = find_task(task).resolve()
    loaded = load_task(path)
    cases = chosen_cases(loaded, case, loaded.objective.cases)
    _, candidate = read_tuned(kernel, path, chosen or [])
    progress = output.progress()
    session = tool_session(loaded, path, candidate, NCU, progress)
    if isinstance(session, Verdict):
        output.say(f"{session.status.value}: {session.reason}")
        raise typer.Exit(REFUSED)
    found: list[KernelProfile] = []
    for name in cases:
        progress(f"profiling case {name}")
        found += session.profile(name)
    output.give(json, lambda: as_json.dumps(found), lambda: profile_report(found))
