"""`evoengine sanitize KERNEL.cu --task TASK`: what compute-sanitizer finds in each case."""

from __future__ import annotations

from typing import Annotated

import typer

from evoengine.cli import kernel_options as options

FOUND = 1


def sanitize(
    kernel: options.Kernel,
    task: options.TaskOfKernel,
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
    chosen: options.Chosen = None,
    json: Annotated[bool, typer.Option("--json", help="The findings as JSON on stdout.")] = False,
) -> None:
    """Check one kernel's memory accesses with compute-sanitizer, with the lines of the kernel.
    Needs a GPU.

    Exits with 0 if nothing is found, with 1 if something is, with 6 without compute-sanitizer.
    """
    from evoengine.cli import output
    from evoengine.cli.tool_command import tool_command
    from evoengine.errors import UsageError, hint
    from evoengine.evaluate.cuda_tool import SANITIZER
    from evoengine.evaluate.sanitizer_output import TOOLS
    from evoengine.records import SanitizerFinding
    from evoengine.report import as_json
    from evoengine.report.tool_reports import sanitizer_report

    if tool not in TOOLS:
        raise UsageError(f"no tool {tool!r}{hint(tool, TOOLS)}")
    ready = tool_command(
        kernel, task, case, lambda loaded: tuple(loaded.cases), chosen or [], SANITIZER
    )
    found: list[SanitizerFinding] = []
    for name in ready.cases:
        ready.progress(f"{tool} on case {name}")
        found += ready.session.sanitize(name, tool)
    output.give(
        json, lambda: as_json.dumps(found), lambda: sanitizer_report(found, tool, ready.cases)
    )
    raise typer.Exit(FOUND if found else 0)
