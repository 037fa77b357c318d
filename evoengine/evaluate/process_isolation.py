"""Keeps a process that runs what a model wrote from reading other processes.

The engine is not dumpable (cli/own_environment.py), so other processes of the same user cannot read
it, unless they may trace any process, as root may. Here a process that runs candidates gives up
that right for ever, before it imports or reads anything that it did not bring along. Where the
kernel has it, a Landlock domain of its own is a second wall. For an ordinary user it is the only
one around the engine's own parents: the shell that a key was typed into is as dumpable as any
program. Neither replaces the other: CAP_PERFMON reads an environment past every domain.
"""

from __future__ import annotations

import ctypes
import os

from evoengine.evaluate.compile.landlock import own_domain

_PR_SET_NO_NEW_PRIVS = 38  # linux/prctl.h
_CAPABILITY_VERSION_3 = 0x20080522  # linux/capability.h
# Of root's capabilities, only the two that files of another owner need: a checkout or a cache that
# is mounted into a container belongs to a user outside, and /proc/PID/mem and environ do not ask
# for these two. All others go, not just CAP_SYS_PTRACE, because many give the same access: to load
# a module, read raw memory, use bpf, mount a file system, see the endpoint's packets. CUDA needs
# none of them.
_CAP_DAC_OVERRIDE, _CAP_FOWNER = 1, 3
_KEPT = 1 << _CAP_DAC_OVERRIDE | 1 << _CAP_FOWNER


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def isolate() -> bool:
    """Keeps this thread, and what it starts, from reading other processes.

    Call it while there is one thread. False where the kernel's Landlock cannot do it: then a
    process of the same user can be read unless it made itself unreadable. Raises OSError where
    privileges cannot be given up.
    """
    give_up_privileges()
    return own_domain()


def give_up_privileges() -> None:
    """Gives up every capability but those for files of other owners; no program that is started
    brings one back.

    That holds for set-user-ID programs, too, such as nvidia-modprobe, which makes device files: the
    engine asks the driver for its devices before any worker starts, so the files exist by then.
    Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _demand(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")
    header, sets = _Header(_CAPABILITY_VERSION_3, 0), (_Sets * 2)()
    _demand(libc.capget(ctypes.byref(header), sets), "capget")
    for low_or_high, kept in zip(sets, (_KEPT, 0), strict=True):
        low_or_high.permitted &= kept
        low_or_high.effective &= kept
        low_or_high.inheritable = 0  # the ambient set shrinks with it
    _demand(libc.capset(ctypes.byref(header), sets), "capset")


def _demand(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(
            number,
            f"{what} was refused ({os.strerror(number)}), so a candidate could look into other"
            " processes",
        )
