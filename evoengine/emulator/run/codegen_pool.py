"""The pool of child processes that generate machine code: started on demand, kept until this
process exits.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from functools import cache

from evoengine.emulator.emulator_errors import Unsupported

MAX_CHILDREN = 8  # children, about 80 MB each; a kernel never needs more modules at once
# The environment variables that Python and LLVM need. The IR comes from an untrusted kernel, so API
# keys are not passed on.
_ENVIRONMENT = (
    "PATH",
    "LD_LIBRARY_PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUTF8",
)


class CodegenPool:
    """At most `count` children at work; further requests wait."""

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(count)
        self._idle: list[_CodegenChild] = []
        self._lock = threading.Lock()

    def compile(self, ir: str, cpu: str, features: str, level: int) -> bytes:
        """The object file of a module; raises Unsupported if LLVM refuses it or crashes on it."""
        with self._free:
            with self._lock:
                child = self._idle.pop() if self._idle else _CodegenChild()
            try:
                found = child.ask(ir, {"cpu": cpu, "features": features, "level": level})
            except BaseException:  # it is in an unknown state, or has exited
                child.close()
                raise
            with self._lock:
                self._idle.append(child)
        object_file, problem = found
        if problem:
            raise Unsupported(f"operands of types that do not match: {problem}")
        return object_file

    def close(self) -> None:
        """Ends the idle children."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()


@cache
def codegen_pool() -> CodegenPool:
    """The pool of this process, with one child for each of its cores."""
    found = CodegenPool(min(MAX_CHILDREN, len(os.sched_getaffinity(0))))
    # if this process exits otherwise, their input is closed, which ends them as well
    atexit.register(found.close)
    return found


class _CodegenChild:
    def __init__(self) -> None:
        command = [sys.executable, "-m", "evoengine.emulator.run.codegen_child"]
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def ask(self, ir: str, how: dict[str, str | int]) -> tuple[bytes, str]:
        """The object file, and what is wrong with the IR if there is none."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        text = ir.encode("utf-8")
        try:
            stdin.write(json.dumps({**how, "bytes": len(text)}).encode() + b"\n" + text)
            stdin.flush()
            answer = json.loads(stdout.readline())
            object_file = stdout.read(answer["bytes"])
        except (OSError, ValueError) as error:  # the child has closed its end of a pipe
            raise Unsupported(f"code generation by LLVM: {self._exit_description()}") from error
        return object_file, answer["problem"]

    def _exit_description(self) -> str:
        """How the child exited."""
        code = self._process.wait()
        return (
            f"the process ended with {signal.Signals(-code).name}"
            if code < 0
            else f"the process ended with exit code {code}"
        )

    def close(self) -> None:
        """Kills the child."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
