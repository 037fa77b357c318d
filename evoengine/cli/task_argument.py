"""The TASK argument, and the starting kernels in place of the task's."""

from __future__ import annotations

from typing import Annotated

import typer

Task = Annotated[
    str,
    typer.Argument(
        metavar="TASK", help="A task file, or the name of a packaged task; see `evoengine tasks`."
    ),
]
StartingKernels = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="Starting kernel, instead of the task's; repeatable."),
]
