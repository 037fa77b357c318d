"""Takes a compiler process its sight of the machine's files (Linux Landlock).

The check of includes is the first wall; this is the second: whatever a source talks the
compiler into, it can open nothing outside the folders of headers and of the compiler.
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
from collections.abc import Iterable

# Numbers from include/uapi/linux/landlock.h and asm-generic/unistd.h; the same on x86-64 and arm64.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_ALL_RIGHTS_OF_ABI_1 = (1 << 13) - 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE  # the rights that a rule on a file, not a folder, may have
_PR_SET_NO_NEW_PRIVS = 38
_MACHINES = {"x86_64", "aarch64"}


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def confine(readable: Iterable[str], runnable: Iterable[str] = (), writable: Iterable[str] = ()) -> bool:
    """Whether this thread and those it starts can from now on open only what lies under these folders.

    What lies under `runnable` may also be read, and run; under `writable`, all but run.
    False where the kernel has no Landlock. Files that are open stay open.
    """
    if platform.system() != "Linux" or platform.machine() not in _MACHINES:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = _RulesetAttributes(_ALL_RIGHTS_OF_ABI_1)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    if ruleset < 0:
        return False
    try:
        for folders, rights in (
            (readable, _READ_FILE | _READ_DIR),
            (runnable, _READ_FILE | _READ_DIR | _EXECUTE),
            (writable, _ALL_RIGHTS_OF_ABI_1 & ~_EXECUTE),
        ):
            for folder in folders:
                _allow(libc, ruleset, folder, rights)
        return bool(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, folder: str, rights: int) -> None:
    handle = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        rule = _PathBeneath(rights if is_folder else rights & _OF_FILES, handle)
        libc.syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(handle)
