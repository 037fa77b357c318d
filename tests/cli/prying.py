"""What native code in a worker could try to get at the key: the system calls themselves, by ctypes,
with nothing of ours around them.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
# sys/ptrace.h
PTRACE_ATTACH, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = (
    16,
    17,
    0x4206,
    0x4207,
)
PIDFD_OPEN, PIDFD_GETFD = 434, 438  # asm-generic/unistd.h
CAP_SYS_PTRACE = 19
OPEN = "open"
REFUSED = {f"refused: {name}" for name in ("EACCES", "EPERM")}


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _answer(result: int) -> str:
    """Of a call that says -1 where it fails."""
    return OPEN if result >= 0 else f"refused: {errno.errorcode[ctypes.get_errno()]}"


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as an intruder would
            file.seek(0)
            return f"{OPEN}: {len(file.read(1 << 16))} bytes" if not path.endswith("mem") else OPEN
    except OSError as error:
        return f"refused: {errno.errorcode[error.errno or 0]}"


def _readv(pid: int) -> str:
    """process_vm_readv of one byte; EFAULT, of an address where nothing is, comes after the
    permission.
    """
    there, here = _Piece(0x1000, 1), ctypes.create_string_buffer(1)
    ours = _Piece(ctypes.addressof(here), 1)
    found = _answer(LIBC.process_vm_readv(pid, ctypes.byref(ours), 1, ctypes.byref(there), 1, 0))
    return OPEN if found == "refused: EFAULT" else found


def _traced(pid: int, request: int) -> str:
    LIBC.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    found = _answer(LIBC.ptrace(request, pid, None, None))
    if found == OPEN:  # let it go again: only one that has stopped can be
        LIBC.ptrace(PTRACE_INTERRUPT, pid, None, None)
        os.waitpid(pid, 0)
        LIBC.ptrace(PTRACE_DETACH, pid, None, None)
    return found


def _descriptor(pid: int) -> str:
    """Takes over a file or a connection that the other has open."""
    handle = LIBC.syscall(PIDFD_OPEN, pid, 0)
    return _answer(LIBC.syscall(PIDFD_GETFD, handle, 0, 0)) if handle >= 0 else _answer(handle)


def attempts(pid: int) -> dict[str, str]:
    """What became of every way into process `pid`."""
    ways: dict[str, Callable[[], str]] = {
        **{
            name: lambda name=name: _read(f"/proc/{pid}/{name}")
            for name in ("environ", "mem", "maps", "auxv")
        },  # type: ignore[misc]
        "process_vm_readv": lambda: _readv(pid),
        "PTRACE_SEIZE": lambda: _traced(pid, PTRACE_SEIZE),
        "PTRACE_ATTACH": lambda: _traced(pid, PTRACE_ATTACH),
        "pidfd_getfd": lambda: _descriptor(pid),
    }
    return {name: way() for name, way in ways.items()}


def _capabilities() -> tuple[ctypes.Array[ctypes.c_uint32], ctypes.Array[ctypes.c_uint32]]:
    """A header, and the effective, permitted and inheritable sets of this thread, twice: their low
    and their high halves.
    """
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    LIBC.capget(header, sets)
    return header, sets


def regain() -> None:
    """Takes back the right to trace any process, which only works where it was never given up."""
    header, sets = _capabilities()
    sets[0] |= 1 << CAP_SYS_PTRACE
    sets[1] |= 1 << CAP_SYS_PTRACE
    LIBC.capset(header, sets)


def drop(*capabilities: int) -> None:
    """Gives up these and keeps the others."""
    header, sets = _capabilities()
    for number in capabilities:
        for place in range(3):
            sets[3 * (number // 32) + place] &= ~(1 << number % 32)
    LIBC.capset(header, sets)


def _attempts_of_a_program(pids: list[int]) -> dict[str, dict[str, str]]:
    """The same from a program that this process starts: the programs of root have all of root's
    rights.
    """
    done = subprocess.run(
        [sys.executable, __file__, *map(str, pids)], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def parents() -> Iterator[int]:
    """The parent of this process, its parent, and so on."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        pid = next(int(line.split()[1]) for line in lines if line.startswith("PPid:"))


def report() -> dict[str, dict[str, str]]:
    """What became of every way into every parent, by process."""
    pids = list(parents())
    direct = {str(pid): attempts(pid) for pid in pids}
    regain()
    again = {str(pid): attempts(pid) for pid in pids}
    by_program = _attempts_of_a_program(pids)
    return {
        pid: {
            **direct[pid],
            **{f"{name}, rights taken back": found for name, found in again[pid].items()},
            **{f"{name} by a program": found for name, found in by_program[pid].items()},
        }
        for pid in direct
    }


if __name__ == "__main__":
    print(json.dumps({pid: attempts(int(pid)) for pid in sys.argv[1:]}))
