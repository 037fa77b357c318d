"""Makes the standard streams safe when they are closed or cannot be written."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from evoengine.errors import OutputError

STDOUT, STDERR = 1, 2


def prepare() -> None:
    """Makes the standard streams safe to use; raises OutputError when stdout is closed.

    A closed stream is first opened on the null device. Otherwise the next file that is opened,
    perhaps a run's database, would get its descriptor, and output would go into that file.
    """
    closed = _open_closed()
    sys.stdout = _text(sys.stdout, _Result(STDOUT, "w", closefd=False))
    sys.stderr = _text(sys.stderr, _Messages(STDERR, "w", closefd=False), always_by_line=True)
    if STDOUT in closed:
        raise OutputError(
            "stdout is closed: the result would be lost; redirect it to a file, or to /dev/null"
        )


def silence() -> None:
    """Discards the rest of stdout, because its reader has gone or its disk is full."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _open_closed() -> set[int]:
    """Opens the closed standard descriptors on the null device; returns which they were."""
    closed = set()
    for descriptor in range(STDERR + 1):
        try:
            os.fstat(descriptor)
        except OSError:
            # open returns the lowest free number, which is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            closed.add(descriptor)
    return closed


def _text(before: TextIO | None, raw: io.FileIO, always_by_line: bool = False) -> TextIO:
    """A stream that replaces `before`; it substitutes characters that cannot be encoded, because
    a model may have written them.
    """
    encoding = before.encoding if before is not None else "utf-8"
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, "replace", line_buffering=always_by_line or raw.isatty()
    )


class _Result(io.FileIO):
    """Bytes to stdout; raises OutputError, or BrokenPipeError if the reader of a pipe has gone,
    which is not a fault.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(
                f"stdout cannot be written: {error.strerror or error}; the output is incomplete:"
                " redirect it elsewhere"
            ) from error


class _Messages(io.FileIO):
    """Bytes to stderr. What cannot be written is dropped: messages never change a run, and
    there is no other place to report it.
    """

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return len(data)
