"""Which processes on a GPU are ours: those that a fork server of this user has forked, of any run.

Those wait for the GPU's token while another one is timed; all others may disturb it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from evoengine.evaluate.device import fork_server

# PROC_PID_INIT_INO of linux/proc_ns.h: the namespace that has all processes of the machine
_ALL_PROCESSES = "pid:[4026531836]"


def other_processes(pids: Iterable[int] | None) -> int | None:
    """How many of the processes that NVML names on a GPU that this process uses are not ours.

    None where that is unknown: in a container, NVML names processes by numbers of the machine, or
    only those of the container, or none.
    """
    found = set(pids or ())
    if os.getpid() not in found:
        return None
    others = sum(1 for pid in found if _is_other(pid))
    return others if others or _sees_all_processes() else None


def _is_other(pid: int) -> bool:
    if pid == os.getpid() or is_ours(pid):
        return False
    try:
        os.getpgid(pid)  # works for a process whose files in /proc are hidden, too
    except ProcessLookupError:
        return False  # it has just ended
    return True


def is_ours(pid: int) -> bool:
    """Whether a fork server of this user, or what it forked, has this number; a fork keeps the
    command line. False for a process that cannot be looked at.
    """
    folder = Path("/proc", str(pid))
    try:
        arguments = (folder / "cmdline").read_bytes().split(b"\0")
        status = (folder / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    uids = [line.split()[1] for line in status.splitlines() if line.startswith("Uid:")]
    return uids == [str(os.getuid())] and fork_server.__name__.encode() in arguments


def _sees_all_processes() -> bool:
    try:
        return Path("/proc/self/ns/pid").readlink().name == _ALL_PROCESSES
    except OSError:
        return False
