"""`evoengine sanitize KERNEL.cu --task TASK`: what compute-sanitizer finds in each case."""

from __future__ import annotations

from typing import Annotated

import typer

FOUND = 1


def sanitize(
    kernel: Annotated[
        str,
        typer.Argument(metavar="KERNEL.cu", help="A kernel file, or the name of a packaged one."),
    ],
    task: Annotated[str, typer.Option(help="A task file, or the name of a packaged task.")],
    tool: Annotated[
        str,
        typer.Option(
            help=(
                "memcheck (accesses out of bounds or misaligned), racecheck (races in shared"
                " memory), initcheck (reads of what was never written) or synccheck (wrong use of"
                " barriers)."
            )
        ),
    ] = "memcheck",
    case: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One case; by default all that are not hidden."),
    ] = None,
    chosen: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set a tunable to any whole number; repeatable."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The findings as JSON on stdout.")] = False,
) -> None:
    """Check one kernel's memory accesses with compute-sanitizer, with the lines of the kernel.
    Needs a GPU.

    Exits with 0 if nothing is found, with 1 if something is, with 6 without compute-sanitizer.
    """
    from evoengine.cli import output
    from evoengine.cli.evaluate import read_tuned
    from evoengine.errors import UsageError, hint
    from evoengine.evaluate.cuda_tool import SANITIZER
    from evoengine.evaluate.sanitizer_output import TOOLS
    from evoengine.evaluate.tool_runs import chosen_cases
    from evoengine.paths import find_task
    from evoengine.records import SanitizerFinding, Verdict
    from evoengine.report import as_json
    from evoengine.report.tool_reports import sanitizer_report
    from evoengine.search.tool_session import tool_session
    from evoengine.task.load import load_task

    if tool not in TOOLS:
        raise UsageError(f"no tool {tool!r}{hint(tool, TOOLS)}")
    path = find_task(task).resolve()
    loaded = load_task(path)
    cases = chosen_cases(loaded, case, tuple(loaded.cases))
    _, candidate = read_tuned(kernel, path, chosen or [])
    progress = output.progress()
    session = tool_session(loaded, path, candidate, SANITIZER, progress)
    if isinstance(session, Verdict):
        output.say(f"{session.status.value}: {session.reason}")
        raise typer.Exit(FOUND)
    found: list[SanitizerFinding] = []
    for name in cases:
        progress(f"{tool} on case {name}")
        found += session.sanitize(name, tool)
    output.give(json, lambda: as_json.dumps(found), lambda: sanitizer_report(found, tool, cases))
    raise typer.Exit(FOUND if found else 0)
