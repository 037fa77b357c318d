"""`evoengine profile KERNEL.cu --task TASK`: what Nsight Compute measures of each launch."""

from __future__ import annotations

from typing import Annotated

import typer

from evoengine.cli import kernel_options as options


def profile(
    kernel: options.Kernel,
    task: options.TaskOfKernel,
    case: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="One case; by default those that the task times."),
    ] = None,
    chosen: options.Chosen = None,
    json: Annotated[bool, typer.Option("--json", help="The figures as JSON on stdout.")] = False,
) -> None:
    """Profile one kernel with Nsight Compute (ncu): time, pipes, memory, occupancy, and why warps
    waited, of each launch. Needs a GPU.

    Exits with 6 without ncu, with 11 if the driver refuses its counters to this user.
    """
    from evoengine.cli import output
    from evoengine.cli.tool_command import tool_command
    from evoengine.evaluate.cuda_tool import NCU
    from evoengine.records import KernelProfile
    from evoengine.report import as_json
    from evoengine.report.tool_reports import profile_report

    ready = tool_command(
        kernel, task, case, lambda loaded: loaded.objective.cases, chosen or [], NCU
    )
    found: list[KernelProfile] = []
    for name in ready.cases:
        ready.progress(f"profiling case {name}")
        found += ready.session.profile(name)
    output.give(json, lambda: as_json.dumps(found), lambda: profile_report(found))
