"""All errors that are not the fault of a candidate.

    EvoError                 a known error: one line for the user, an exit code
    |- UsageError        2   a wrong command line
    |- TaskError         3   a task file or its reference is missing or malformed
    |- CandidateError    4   a kernel file cannot be used: its header or an expression is wrong
    |- DeviceError       5   no usable device, or not the device of the run
    |- ToolchainError    6   no compiler, or one without its headers
    |- StoreError        7   a run folder that cannot be read or written
    |  |- NewerSchema        a later evoengine wrote it
    |  |- RunLocked          another process is working on it
    |- GeneratorError    8   the model endpoint cannot be used
    |- WorkerError       9   a worker process does not start or does not answer
    |- OutputError      10   the result cannot be written to stdout
    |- CountersRefused  11   the driver does not let this user read the GPU's counters

A bad kernel is never an exception: it gets a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class EvoError(Exception):
    """A known error; its text is the line that the user sees."""

    exit_code = 1


class UsageError(EvoError):
    """The command line is wrong."""

    exit_code = 2


class TaskError(EvoError):
    """A task file or its reference is missing or malformed."""

    exit_code = 3


class CandidateError(EvoError):
    """A kernel file cannot be used; the text names line and column where possible."""

    exit_code = 4


class DeviceError(EvoError):
    """There is no usable device, or it is not the device of the run."""

    exit_code = 5


class ToolchainError(EvoError):
    """There is no compiler, or its headers are missing."""

    exit_code = 6


class StoreError(EvoError):
    """A run folder cannot be read or written."""

    exit_code = 7


class NewerSchema(StoreError):  # noqa: N818 - names what was found
    """A later evoengine wrote the run."""


class RunLocked(StoreError):  # noqa: N818 - names what was found
    """Another process is working on the run."""


class GeneratorError(EvoError):
    """The model endpoint cannot be used: it is absent, or it refuses the key."""

    exit_code = 8


class WorkerError(EvoError):
    """A worker process does not start or does not answer."""

    exit_code = 9


class OutputError(EvoError):
    """The result cannot be written to stdout: it is closed, or its disk is full."""

    exit_code = 10


class CountersRefused(EvoError):  # noqa: N818 - named like what the driver did
    """The driver does not let this user read the GPU's performance counters."""

    exit_code = 11


def hint(name: str, known: Iterable[str], title: str = "known", most: int | None = None) -> str:
    """The end of a message about an unknown name, e.g. `; did you mean 'gemm'? known: gemm, sdpa`.

    `title` precedes the known names, of which at most `most` are listed. An empty name gives no
    guess.
    """
    names = list(known)
    near = nearest(name, names)
    question = f" did you mean {near!r}?" if near else ""
    listed = ", ".join(names[:most]) or "none"
    more = ", ..." if most is not None and len(names) > most else ""
    return f";{question} {title}: {listed}{more}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to `name`; None if none is similar."""
    return next(iter(get_close_matches(name, list(known), n=1)), None)
