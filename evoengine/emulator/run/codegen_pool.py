"""The children that make machine code: started as they are needed, kept as long as this process."""

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

MOST = 8  # children, of some 80 MB each; a kernel has no more modules that are wanted at once
# All that Python and LLVM need of the environment. What they read was made of a kernel that anybody
# may have written, so keys stay here.
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
    """At most `count` children at work; who wants one more waits."""

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(count)
        self._idle: list[_Child] = []
        self._lock = threading.Lock()

    def make(self, ir: str, cpu: str, features: str, level: int) -> bytes:
        """The object file of a module; raises Unsupported where LLVM refuses it, or ends over
        it.
        """
        with self._free:
            with self._lock:
                child = self._idle.pop() if self._idle else _Child()
            try:
                found = child.ask(ir, {"cpu": cpu, "features": features, "level": level})
            except BaseException:  # it is in the middle of something, or gone
                child.close()
                raise
            with self._lock:
                self._idle.append(child)
        made, problem = found
        if problem:
            raise Unsupported(f"operands of types that do not fit: {problem}")
        return made

    def close(self) -> None:
        """Ends the children that do nothing."""
        with self._lock:
            while self._idle:
                self._idle.pop().close()


@cache
def codegen_pool() -> CodegenPool:
    """Those of this process, one for each of its cores."""
    found = CodegenPool(min(MOST, len(os.sched_getaffinity(0))))
    # a process that ends otherwise closes their input, which ends them as well
    atexit.register(found.close)
    return found


class _Child:
    def __init__(self) -> None:
        command = [sys.executable, "-m", "evoengine.emulator.run.codegen_child"]
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def ask(self, ir: str, how: dict[str, str | int]) -> tuple[bytes, str]:
        """The object file, or what is wrong with the IR."""
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None and taken is not None
        text = ir.encode("utf-8")
        try:
            given.write(json.dumps({**how, "bytes": len(text)}).encode() + b"\n" + text)
            given.flush()
            answer = json.loads(taken.readline())
            made = taken.read(answer["bytes"])
        except (OSError, ValueError) as error:  # its end of a pipe is closed
            raise Unsupported(f"LLVM makes no code of it: {self._end()}") from error
        return made, answer["problem"]

    def _end(self) -> str:
        """How it ended."""
        code = self._process.wait()
        return (
            f"it ended with {signal.Signals(-code).name}"
            if code < 0
            else f"it ended with exit code {code}"
        )

    def close(self) -> None:
        """Ends it, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
