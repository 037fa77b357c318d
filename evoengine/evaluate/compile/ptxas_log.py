"""What ptxas reports about each kernel with --ptxas-options=-v."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for '?([^'\s]+)")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")

# A function that calls itself has no known depth; it counts as so many calls of its largest frame.
RECURSIVE_CALLS = 64


@dataclass(frozen=True)
class AssemblerReport:
    """One kernel; static_shared_bytes without what the system reserves."""

    registers: int
    static_shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    # the largest frame of a function that is called; frames of calls within calls are not added up
    callee_stack_bytes: int = 0


def reports(log: str) -> dict[str, AssemblerReport]:
    """The report of each kernel, by its name in the cubin."""
    result: dict[str, AssemblerReport] = {}
    entry, subject = "", ""
    frames: dict[str, tuple[int, int, int]] = {}
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = subject = match[1]
        elif match := _PROPERTIES.search(line):
            subject = match[1]
        elif match := _FRAME.search(line):
            frames[subject] = (int(match[1]), int(match[2]), int(match[3]))
            if entry in result:  # the functions that a kernel calls follow it
                most = max(result[entry].callee_stack_bytes, int(match[1]))
                result[entry] = replace(result[entry], callee_stack_bytes=most)
        elif (match := _USED.search(line)) and entry:
            shared = _SHARED.search(line)
            result[entry] = AssemblerReport(
                int(match[1]), int(shared[1]) if shared else 0, *frames.get(entry, (0, 0, 0))
            )
    return result
