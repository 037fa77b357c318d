"""What `profile` and `sanitize` read and compile before they run a kernel under one of NVIDIA's
tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from evoengine.evaluate.tool_runs import ToolRuns
    from evoengine.protocols import Progress
    from evoengine.task.schema import Task

REFUSED = 1


@dataclass(frozen=True)
class ToolCommand:
    """A kernel that is ready to run under a tool, and the cases to run it on."""

    session: ToolRuns
    cases: tuple[str, ...]
    progress: Progress


def tool_command(
    kernel: str,
    task: str,
    case: str | None,
    default_cases: Callable[[Task], Sequence[str]],
    chosen: list[str],
    tool: str,
) -> ToolCommand:
    """The kernel compiled for `tool`, with `case` or else the cases of `default_cases`.

    Where the kernel is refused, says why and exits. Raises EvoError.
    """
    from evoengine.cli import output
    from evoengine.cli.kernel_options import read_tuned
    from evoengine.evaluate.tool_runs import chosen_cases
    from evoengine.paths import find_task
    from evoengine.records import Verdict
    from evoengine.search.tool_session import tool_session
    from evoengine.task.load import load_task

    path = find_task(task).resolve()
    loaded = load_task(path)
    cases = chosen_cases(loaded, case, default_cases(loaded))
    _, candidate = read_tuned(kernel, path, chosen)
    progress = output.progress()
    session = tool_session(loaded, path, candidate, tool, progress)
    if isinstance(session, Verdict):
        output.say(f"{session.status.value}: {session.reason}")
        raise typer.Exit(REFUSED)
    return ToolCommand(session, cases, progress)
