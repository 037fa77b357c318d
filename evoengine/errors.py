"""Everything that can go wrong through no fault of a candidate.

    EvoError                 a known fault: one line for the user, an exit code
    |- UsageError        2   the command line asks for something that does not fit
    |- TaskError         3   a task file or its reference is missing or malformed
    |- CandidateError    4   a kernel file cannot be used: its header or an expression is wrong
    |- DeviceError       5   no usable device, or a device that does not fit the run
    |- ToolchainError    6   no compiler, or one without its headers
    |- StoreError        7   a run folder that cannot be read or written
    |  |- NewerSchema        it was written by a later evoengine
    |  |- RunLocked          another process is working on it
    |- GeneratorError    8   the model endpoint cannot be used
    |- WorkerError       9   one of our own processes does not start or does not answer
    |- OutputError      10   the result cannot be written to stdout

A bad kernel is never an exception: it is a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class EvoError(Exception):
    """A known fault; its text is the one line that the user sees."""

    exit_code = 1


class UsageError(EvoError):
    """The command line asks for something that does not fit."""

    exit_code = 2


class TaskError(EvoError):
    """A task file or its reference is missing or malformed."""

    exit_code = 3


class CandidateError(EvoError):
    """A kernel file cannot be used; the text names line and column where there are any."""

    exit_code = 4


class DeviceError(EvoError):
    """There is no usable device, or it does not fit the run."""

    exit_code = 5


class ToolchainError(EvoError):
    """There is no compiler, or it lacks headers."""

    exit_code = 6


class StoreError(EvoError):
    """A run folder cannot be read or written."""

    exit_code = 7


class NewerSchema(StoreError):  # noqa: N818 - says what was found
    """The run was written by a later evoengine than this one."""


class RunLocked(StoreError):  # noqa: N818 - says what was found
    """Another process is working on the run."""


class GeneratorError(EvoError):
    """The model endpoint cannot be used: it is absent, or it refuses the key."""

    exit_code = 8


class WorkerError(EvoError):
    """One of the engine's own processes does not start or does not answer."""

    exit_code = 9


class OutputError(EvoError):
    """The result cannot be written to stdout: it is closed, or its disk is full."""

    exit_code = 10


def hint(name: str, known: Iterable[str], title: str = "known", most: int | None = None) -> str:
    """The end of a message about an unknown name, e.g. `; did you mean 'gemm'? known: gemm, sdpa`.

    `title` stands before the known names; at most `most` of them are listed. Without a name there
    is no guess.
    """
    names = list(known)
    near = nearest(name, names)
    question = f" did you mean {near!r}?" if near else ""
    listed = ", ".join(names[:most]) or "none"
    more = ", ..." if most is not None and len(names) > most else ""
    return f";{question} {title}: {listed}{more}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is probably a misspelling of; None where none is near."""
    return next(iter(get_close_matches(name, list(known), n=1)), None)
