"""Prints results on stdout and everything else on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from evoengine.protocols import Progress

WIDE = 10_000  # columns of a table in a file or a pipe, where nothing must be wrapped


def results() -> Console:
    """The console for results; very wide unless stdout is a terminal."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else WIDE
    return Console(width=width, highlight=False, soft_wrap=False)


def messages() -> Console:
    """The console for progress, notices and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """Prints one line on stderr and flushes it; what controls a terminal is replaced."""
    from evoengine.report.format import printable

    print(printable(text), file=sys.stderr, flush=True)


def give(as_json: bool, text: Callable[[], str], table: Callable[[], RenderableType]) -> None:
    """Prints rows on stdout, as JSON or as a table."""
    if as_json:
        print(text())
    else:
        print_table(table())


def print_table(table: RenderableType) -> None:
    """Prints `table` on stdout; no line ends in spaces."""
    from evoengine.report.right_stripped import RightStripped

    results().print(RightStripped(table))


def progress() -> Progress:
    """A Progress that prints each new step once."""
    seen: list[str] = []

    def report(step: str) -> None:
        if seen[-1:] != [step]:
            seen[:] = [step]
            say(f"{step} ...")

    return report
