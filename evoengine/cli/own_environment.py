"""The environment of this process, read once and then put out of everybody's sight.

The engine holds the key of a model endpoint and starts processes that run what a model wrote, as
the same user. These get an environment of their own (evaluate/child_environment.py); this file
keeps them from reading ours out of /proc or memory.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType

from evoengine.evaluate.child_environment import has_user, is_secret

_PR_SET_DUMPABLE = 4  # linux/prctl.h


def take_environment() -> Mapping[str, str]:
    """The environment as it was, for whoever is to read keys; afterwards no other process can.

    This process becomes "not dumpable": no process of the same user, but for one with
    CAP_SYS_PTRACE (see evaluate/process_isolation.py), may read its memory, its /proc/PID/environ,
    or attach to it. It writes no core file either, and a profiler needs root. Secret variables are
    gone from `os.environ`, and their values are overwritten in the memory that the kernel shows as
    /proc/PID/environ. So are addresses of proxies that hold a user, but these stay in `os.environ`,
    where the endpoint's client reads them.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    # elsewhere nothing runs candidates
    if sys.platform == "linux" and libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(
            ctypes.get_errno(),
            "prctl(PR_SET_DUMPABLE) was refused, so other processes could read the key",
        )
    taken = dict(os.environ)
    for name, value in taken.items():
        if is_secret(name) or has_user(value):
            _wipe(libc, name)
        if is_secret(name):
            del os.environ[name]
    return MappingProxyType(taken)


def _wipe(libc: ctypes.CDLL, name: str) -> None:
    """Overwrites the value in the block that the process was started with; deleting it would only
    drop a pointer.
    """
    libc.getenv.restype = ctypes.c_void_p
    address = libc.getenv(os.fsencode(name))
    if address:
        ctypes.memset(address, 0, len(ctypes.string_at(address)))
