"""The three standard streams of this process: what is closed, and output that cannot be written."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from evoengine.errors import OutputError

STDOUT, STDERR = 1, 2


def prepare() -> None:
    """Makes the standard streams safe to use; raises OutputError when stdout is closed.

    A closed one is opened on the null device first: else the next file that is opened, a
    run's database perhaps, would get its number, and what is printed would go into it.
    """
    closed = _open_closed()
    sys.stdout = _text(sys.stdout, _Result(STDOUT, "w", closefd=False))
    sys.stderr = _text(sys.stderr, _Messages(STDERR, "w", closefd=False), always_by_line=True)
    if STDOUT in closed:
        raise OutputError(
            "stdout is closed: the result would be lost; send it to a file, or to /dev/null"
        )


def silence() -> None:
    """Sends what is still to be written to stdout nowhere: whoever read it is gone, or its disk is
    full.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _open_closed() -> set[int]:
    """The standard descriptors that were closed, all of them open now."""
    closed = set()
    for descriptor in range(STDERR + 1):
        try:
            os.fstat(descriptor)
        except OSError:
            # it has the lowest free number, which is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            closed.add(descriptor)
    return closed


def _text(before: TextIO | None, raw: io.FileIO, always_by_line: bool = False) -> TextIO:
    """A stream in place of `before`; characters that it cannot show are replaced, because a model
    may have written them.
    """
    encoding = before.encoding if before is not None else "utf-8"
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "replace", line_buffering=always_by_line or raw.isatty()
    )


class _Result(io.FileIO):
    """Bytes to stdout. A pipe whose reader is gone raises BrokenPipeError as ever: that is no
    fault.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(
                f"stdout cannot be written: {error.strerror or error}; the output is not whole:"
                " send it elsewhere"
            ) from error


class _Messages(io.FileIO):
    """Bytes to stderr. What cannot be written is dropped: watching never changes a run, and there
    is nowhere left to say it.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return len(data)
