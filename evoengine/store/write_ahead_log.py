"""Checks run.db-wal before SQLite opens it: SQLite silently drops a log that it cannot read, with
all its commits.

A kill or a power cut can leave torn frames at the end of the log; SQLite reads it up to there. Its
first 32 bytes are on the disk before the first frame is written, so no kill damages them.
https://www.sqlite.org/fileformat2.html#walformat

The database itself is not opened here: a process that closes any descriptor of a file loses all its
locks on it (POSIX), including those that protect a live run's log.
"""

from __future__ import annotations

import shlex
import struct
from pathlib import Path

from evoengine.errors import StoreError
from evoengine.store.faults import translated

_HEADER = 32  # bytes: magic, version, page size, checkpoint number, two salts, two checksums
_MAGIC = 0x377F0682  # the lowest bit is set if the checksums are of big-endian words
_VERSION = 3007000


def log_of(database: Path) -> Path:
    """Where SQLite keeps the log of `database`."""
    return database.with_name(f"{database.name}-wal")


def refuse_damaged_log(database: Path) -> None:
    """Raises StoreError unless the log beside `database` is absent, empty or readable by
    SQLite.
    """
    log = log_of(database)
    with translated(log):
        # a live run may be writing the header at this moment
        problem = _problem(log) and _problem(log)
        if problem:
            size = log.stat().st_size
            raise StoreError(
                f"{log}: expected SQLite's write-ahead log of {database.name}, got {size} bytes"
                f" with {problem}: it may hold the latest commits, and opening {database.name}"
                " would drop them; restore both files from a copy, or continue without"
                f" these commits: mv {shlex.quote(str(log))} {shlex.quote(f'{log}.damaged')}"
            )


def _problem(log: Path) -> str:
    """What is wrong with the header of the log; empty if it is valid."""
    try:
        with log.open("rb") as file:
            head = file.read(_HEADER)
            more = bool(file.read(1))
    except FileNotFoundError:
        return ""
    # after a power cut a first header can have its length but no content
    if not head or (head == bytes(_HEADER) and not more):
        return ""
    if len(head) < _HEADER:
        return f"a header cut short (a whole one has {_HEADER})"
    magic, version, *_ = struct.unpack(">8I", head)
    if magic & ~1 != _MAGIC:
        return f"the magic number {magic:#010x} (a log has {_MAGIC:#010x} or {_MAGIC | 1:#010x})"
    if version != _VERSION:
        return f"the format version {version} (a log has {_VERSION})"
    if _checksum(head[:24], "big" if magic & 1 else "little") != head[24:]:
        return "a wrong checksum in its header"
    return ""


def _checksum(data: bytes, order: str) -> bytes:
    """SQLite's checksum of `data`, whose length is a multiple of 8 bytes."""
    first = second = 0
    words = struct.unpack(f"{'>' if order == 'big' else '<'}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return struct.pack(">2I", first, second)
