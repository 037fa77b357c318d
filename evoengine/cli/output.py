"""Where words go: results on stdout, everything else on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from evoengine.protocols import Progress

WIDE = 10_000  # columns of a table that goes into a file or a pipe, where nothing has to be wrapped


def results() -> Console:
    """The console of results; wide where nobody's window is too narrow for it."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDE
    return Console(width=width, highlight=False, soft_wrap=False)


def messages() -> Console:
    """The console of progress, notices and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """One line on stderr, at once."""
    print(text, file=sys.stderr, flush=True)


def give(as_json: bool, text: Callable[[], str], table: Callable[[], RenderableType]) -> None:
    """Prints one of two forms of the same rows on stdout."""
    if as_json:
        print(text())
    else:
        show(table())


def show(table: RenderableType) -> None:
    """Prints what `table` draws on stdout; no line ends in blanks."""
    from evoengine.report.right_stripped import RightStripped

    results().print(RightStripped(table))


def progress() -> Progress:
    """Tells each new step once."""
    seen: list[str] = []

    def tell(step: str) -> None:
        if seen[-1:] != [step]:
            seen[:] = [step]
            say(f"{step} ...")

    return tell
