"""`evoengine evaluate KERNEL.cu --task TASK`: one verdict without a search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evoengine.cli.device_option import CHECK_HELP, DEVICE_HELP

if TYPE_CHECKING:
    from evoengine.candidate.kernel_file import Candidate

NOT_CORRECT = 1


def evaluate(
    kernel: Annotated[
        str,
        typer.Argument(metavar="KERNEL.cu", help="A kernel file, or the name of a packaged one."),
    ],
    task: Annotated[str, typer.Option(help="A task file, or the name of a packaged task.")],
    chosen: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set a tunable to any whole number; repeatable."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help=DEVICE_HELP)] = "auto",
    check: Annotated[str | None, typer.Option(metavar="CHECKS", help=CHECK_HELP)] = None,
    error_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg", help="Write a map of the error of a wrong output to this file."
        ),
    ] = None,
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
    from evoengine.report.error_map import svg_of
    from evoengine.report.folders import write_file
    from evoengine.report.rows_from_store import verdict_row
    from evoengine.report.verdict_report import verdict_report
    from evoengine.search.choose_run import parse_checks
    from evoengine.search.make_executor import evaluate_once, find_device
    from evoengine.task.load import load_task

    path = find_task(task).resolve()
    loaded = load_task(path)
    file, candidate = read_tuned(kernel, path, chosen or [])
    used = find_device(device, loaded)
    checks = parse_checks(check, used)
    if used.brief:
        output.say(f"note: {used.brief}")
    verdict = asyncio.run(evaluate_once(loaded, path, candidate, used, checks, output.progress()))
    row = verdict_row(verdict, file.stem, candidate.tunables, loaded.target)
    if error_map is not None and verdict.forensics is not None:
        write_file(error_map, svg_of(verdict.forensics, file.stem))
    output.give(json, lambda: as_json.dumps(row), lambda: verdict_report(row))
    raise typer.Exit(0 if verdict.status is Status.correct else NOT_CORRECT)


def read_tuned(kernel: str, task_path: Path, chosen: list[str]) -> tuple[Path, Candidate]:
    """The file and the candidate that KERNEL and `--set` name, with a warning for values that are
    not declared; raises CandidateError and UsageError.
    """
    from evoengine.candidate import kernel_file
    from evoengine.cli import output
    from evoengine.paths import find_kernel

    file = find_kernel(kernel, task_path.parent)
    settings = dict(_setting(text) for text in chosen)
    tuned = kernel_file.read(file).tuned(settings, undeclared_values=True)
    for name, value in settings.items():
        declared = tuned.plan.tunables[name]
        if value not in declared:
            output.say(
                f"warning: {name}={value} is not one of the declared values {list(declared)}, so no"
                " search would try it"
            )
    return file, tuned


def _setting(text: str) -> tuple[str, int]:
    from evoengine.errors import UsageError

    name, equals, value = text.partition("=")
    try:
        if not (name and equals):
            raise ValueError
        return name.strip(), int(value)
    except ValueError:
        raise UsageError(
            f"expected --set NAME=VALUE with a whole number, got {text!r}, e.g. --set BLOCK_M=64"
        ) from None
