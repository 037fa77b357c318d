"""Child processes that do not outlive their parent, whatever ends it."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent: int | None = None) -> None:
    """Has the kernel kill this process when its parent ends, even by SIGKILL.

    `parent` is the process that started it, by default the parent now. It may be process 1, as
    the first program of a container is.
    """
    expected = os.getppid() if parent is None else parent
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != expected:  # it ended before the call above
        os._exit(1)
