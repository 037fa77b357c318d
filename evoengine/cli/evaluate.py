"""`evoengine evaluate KERNEL.cu --task TASK`: one verdict without a search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evoengine.cli import device_option, kernel_options

if TYPE_CHECKING:
    from evoengine.records import Verdict

NOT_CORRECT = 1


def evaluate(
    kernel: kernel_options.Kernel,
    task: kernel_options.TaskOfKernel,
    chosen: kernel_options.Chosen = None,
    device: device_option.Device = "auto",
    check: device_option.Check = None,
    error_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg", help="Write a map of the error of a wrong output to this file."
        ),
    ] = None,
    repair: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.0,
            help="How long to look for the one change that makes a wrong kernel right; by default"
            " 20 s on a GPU and 40 s on the emulator; 0 leaves it out.",
        ),
    ] = None,
    like: kernel_options.Like = None,
    json: Annotated[bool, typer.Option("--json", help="The verdict as JSON on stdout.")] = False,
) -> None:
    """Judge one kernel: errors of every case, resources, times against the fastest baseline
    (modelled times on the emulator).

    Exits with 0 if the kernel is correct, else with 1.
    """
    import asyncio

    from evoengine.cli import output
    from evoengine.paths import find_task
    from evoengine.records import Status
    from evoengine.report import as_json
    from evoengine.report.rows_from_store import verdict_row
    from evoengine.report.verdict_report import verdict_report
    from evoengine.search.choose_run import parse_checks
    from evoengine.search.make_executor import evaluate_once, find_device
    from evoengine.task.load import load_task

    path = find_task(task).resolve()
    loaded = load_task(path)
    file, candidate = kernel_options.read_tuned(kernel, path, chosen or [])
    used = find_device(device, loaded)
    checks = parse_checks(check, used)
    likes = kernel_options.kernels_like(like, loaded, path, candidate)
    if used.brief:
        output.say(f"note: {used.brief}")
    verdict = asyncio.run(
        evaluate_once(loaded, path, candidate, used, checks, output.progress(), repair, likes)
    )
    row = verdict_row(verdict, file.stem, candidate.tunables, loaded.target)
    if error_map is not None:
        _write_map(error_map, verdict, file.stem)
    output.give(json, lambda: as_json.dumps(row), lambda: verdict_report(row))
    raise typer.Exit(0 if verdict.status is Status.correct else NOT_CORRECT)


def _write_map(path: Path, verdict: Verdict, name: str) -> None:
    """Writes the map, or says why there is none: a map of an earlier verdict stays as it is."""
    from evoengine.cli import output
    from evoengine.report.error_map_svg import svg_of
    from evoengine.report.folders import write_file

    if svg := svg_of(verdict.forensics, name) if verdict.forensics else "":
        write_file(path, svg)
    else:
        output.say(
            f"note: {path} was not written: only a wrong result in a case that is shown has a map,"
            f" and this verdict is {verdict.status.value}: {verdict.reason}"
        )
