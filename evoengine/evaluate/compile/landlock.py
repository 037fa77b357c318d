"""Hides the machine's files from a compiler process (Linux Landlock).

The check of includes is the first wall; this is the second: whatever a source makes the compiler
do, it can open nothing outside the folders of headers and of the compiler.
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
_REFER, _ABI_WITH_REFER = 1 << 13, 2  # to move a file to another folder; Linux 5.19
_VERSION = 1 << 0  # a flag that asks for the ABI
# the rights that a rule on a file, not a folder, may have
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE
_PR_SET_NO_NEW_PRIVS = 38
_MACHINES = {"x86_64", "aarch64"}


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def confine(
    readable: Iterable[str], runnable: Iterable[str] = (), writable: Iterable[str] = ()
) -> bool:
    """Lets this thread and those it starts open only what is in these folders; returns whether the
    kernel could.

    What is in `runnable` may be read and run; what is in `writable`, anything but run. Files that
    are open stay open.
    """
    rules = (
        (readable, _READ_FILE | _READ_DIR),
        (runnable, _READ_FILE | _READ_DIR | _EXECUTE),
        (writable, _ALL_RIGHTS_OF_ABI_1 & ~_EXECUTE),
    )
    return _abi() > 0 and _enter(_ALL_RIGHTS_OF_ABI_1, rules)


def own_domain() -> bool:
    """Lets this thread and those it starts read only processes that they start; files stay as they
    were. Returns whether the kernel could.

    No process of a domain can trace one outside of it, or read its memory or environment. A domain
    must restrict something: here moving files between folders, which is then allowed everywhere.
    Before the ABI that can allow it, every domain forbids it, and torch's caches need it; so False
    there, and where the kernel has no Landlock.
    """
    return has_domains() and _enter(_REFER, ((("/",), _REFER),))


def has_domains() -> bool:
    """Whether `own_domain` works here."""
    return _abi() >= _ABI_WITH_REFER


def _abi() -> int:
    """The version of the kernel's Landlock; 0 or less where there is none."""
    if platform.system() != "Linux" or platform.machine() not in _MACHINES:
        return 0
    return int(ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION))


def _enter(handled: int, rules: Iterable[tuple[Iterable[str], int]]) -> bool:
    """Limits the rights `handled` to `rules` from now on; returns whether the kernel could."""
    libc = ctypes.CDLL(None, use_errno=True)
    attributes = _RulesetAttributes(handled)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0)
    if ruleset < 0:
        return False
    try:
        for folders, rights in rules:
            for folder in folders:
                _allow(libc, ruleset, folder, rights)
        return bool(
            libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            and libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
        )
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
