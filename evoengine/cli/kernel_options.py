"""The kernel, its task and its tunables on a command line, which `evaluate`, `profile` and
`sanitize` share.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evoengine.candidate.kernel_file import Candidate
    from evoengine.task.schema import Task

Kernel = Annotated[
    str,
    typer.Argument(metavar="KERNEL.cu", help="A kernel file, or the name of a packaged one."),
]
TaskOfKernel = Annotated[str, typer.Option(help="A task file, or the name of a packaged task.")]
Chosen = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Set a tunable to any whole number; repeatable."
    ),
]

Like = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KERNEL.cu",
        help="A kernel of the task that is right and from which KERNEL was made: what it has in"
        " place of what is wrong is tried first; by default the task's starting kernels;"
        " repeatable.",
    ),
]


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


def kernels_like(
    named: list[str] | None, task: Task, task_path: Path, candidate: Candidate
) -> list[Candidate]:
    """The kernels that `--like` names, by default the task's starting kernels, without `candidate`;
    raises CandidateError and UsageError.
    """
    from evoengine.candidate import kernel_file
    from evoengine.paths import find_kernel

    files = [find_kernel(name, task_path.parent) for name in named or task.seeds_from]
    kernels = [kernel_file.read(file) for file in files]
    return [kernel for kernel in kernels if kernel.source != candidate.source]


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
