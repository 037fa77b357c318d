"""Runs the compiler as a child process with limits."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MEMORY_BYTES = 4 << 30  # of address space; the seeds need 0.09 GB resident
# the largest seed makes 0.15 MB of PTX, a kernel for each function of the headers 1.4 MB
OUTPUT_BYTES = 64 << 20


@dataclass(frozen=True)
class ProcessResult:
    """The result of a child process; `ended`: the limit or signal that ended it, empty if it exited
    itself.
    """

    code: int
    stdout: str
    stderr: str
    ended: str


def environment(folder: Path) -> dict[str, str]:
    """The compiler's environment: only a folder for its own files."""
    return {"PATH": "", "LC_ALL": "C", "TMPDIR": str(folder), "HOME": str(folder)}


def run(command: Sequence[str], folder: Path, timeout_s: float) -> ProcessResult:
    """Runs `command` in `folder`, which also takes its output; raises OSError if it cannot be
    started.
    """
    out, err = folder / "stdout", folder / "stderr"
    # the child holds one end; the other is closed when the child exits. Popen.wait would poll every
    # 50 ms
    alive, held = os.pipe()
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(  # noqa: S603 - our own command; what was written by others is in a file
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env=environment(folder),
            start_new_session=True,
            pass_fds=[held],
        )
        os.close(held)
        try:
            _limit(process.pid, timeout_s)
            ended = select.poll()  # select() takes no descriptor above 1023
            ended.register(alive)
            in_time = bool(ended.poll(timeout_s * 1000))
            code = process.wait() if in_time else -signal.SIGALRM
        finally:
            os.close(alive)
            _kill(process)
    why = "" if code >= 0 else _reason(code, timeout_s)
    return ProcessResult(
        code, out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace"), why
    )


def _limit(pid: int, timeout_s: float) -> None:
    """Sets the limits from outside, because a preexec function is not safe in a process with
    threads.
    """
    if not hasattr(resource, "prlimit"):  # Linux only; elsewhere there is only the time limit
        return
    limits = {
        resource.RLIMIT_AS: MEMORY_BYTES,
        resource.RLIMIT_FSIZE: OUTPUT_BYTES,
        resource.RLIMIT_CPU: int(timeout_s) + 2,
        resource.RLIMIT_CORE: 0,
    }
    try:
        for what, limit in limits.items():
            hard = resource.prlimit(pid, what)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.prlimit(pid, what, (limit, limit))
    except ProcessLookupError:  # it has exited already
        return


def _kill(process: subprocess.Popen[bytes]) -> None:
    # it has exited already; some systems also raise these for a group of zombies
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _reason(code: int, timeout_s: float) -> str:
    name = signal.Signals(-code).name
    limits = {
        "SIGALRM": f"no result within {timeout_s:g} s",
        "SIGXCPU": f"no result within {timeout_s:g} s",
        "SIGXFSZ": f"more than {OUTPUT_BYTES >> 20} MB of output",
    }
    return limits.get(
        name,
        f"it crashed with {name}; perhaps it exceeded its memory limit of {MEMORY_BYTES >> 30} GB",
    )
