"""Reads the environment of this process once and then hides it from other processes.

The engine holds the key of a model endpoint and starts processes that run what a model wrote, as
the same user. These get their own environment (evaluate/child_environment.py); this file keeps
them from reading ours from /proc or memory.
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
    """The environment with its keys; afterwards no other process can read them.

    This process becomes "not dumpable": no process of the same user, except one with
    CAP_SYS_PTRACE (see evaluate/process_isolation.py), may read its memory or /proc/PID/environ, or
    attach to it. It also writes no core file, and a profiler needs root. Secret variables are
    removed from `os.environ`, and their values are overwritten in the memory that the kernel shows
    as /proc/PID/environ. Proxy addresses that hold a user are overwritten there too, but stay in
    `os.environ`, where the endpoint's client reads them.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    # candidates run only on Linux
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
    """Overwrites the value in the process's initial environment block; deleting the variable
    would only drop a pointer.
    """
    libc.getenv.restype = ctypes.c_void_p
    address = libc.getenv(os.fsencode(name))
    if address:
        ctypes.memset(address, 0, len(ctypes.string_at(address)))
