"""The parent's side of a compiler process: starts, asks, watches and kills it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import signal
import sys
from collections import deque
from pathlib import Path
from typing import TypeVar

from evoengine.errors import WorkerError
from evoengine.evaluate.child_environment import child_environment
from evoengine.evaluate.compile.compile_unit import Built, CompileUnit, Toolchain
from evoengine.evaluate.compile.compiler_protocol import (
    MAX_LINE_BYTES,
    CompileAnswer,
    CompileRequest,
    Hello,
)

START_TIMEOUT_S = 60.0  # 0.5 s on an idle machine; unpacking headers on a slow disk takes longer
_WATCH_EVERY_S = 0.05
# a process that dies with this share of its memory in use is taken to have run out of it
_NEAR_LIMIT = 0.8
# the modules that a process can run
NVRTC, CLANG = (
    "evoengine.evaluate.compile.nvrtc_worker",
    "evoengine.evaluate.compile.clang_worker",
)
_LAST_LINES = 20  # lines of the compiler's own output that are kept

# numpy comes with CuPy; its threads would take address space for every core, and nothing here
# computes with it.
_SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_CRASHES = {
    signal.SIGSEGV,
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGILL,
    signal.SIGFPE,
    signal.SIGTRAP,
}


T = TypeVar("T")


class Killed(Exception):  # noqa: N818 - the pool decides what it means
    """The process was killed from outside while it worked."""


def _piped(stream: T | None) -> T:
    if stream is None:
        raise WorkerError("a compiler process was started without its pipes")
    return stream


def _children(pid: int) -> list[int]:
    """The processes that process `pid` has started, such as clang; none when it has ended."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class CompilerProcess:
    """One process in its own process group; it is killed unless it answers in time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._stdin, self._stdout, self._stderr = (
            _piped(process.stdin),
            _piped(process.stdout),
            _piped(process.stderr),
        )
        self.toolchain = Toolchain()
        self._first_bytes = 0  # its address space before the first unit
        self.grown_bytes = 0  # what units have left behind in it
        self._killed = False
        self._next_id = 1
        self._last_output: deque[str] = deque(maxlen=_LAST_LINES)
        self._listener = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, module: str = NVRTC) -> CompilerProcess:
        """A process of `module` that is ready; its toolchain says whether it can compile. Raises
        WorkerError if it does not answer.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=MAX_LINE_BYTES,
            env={**child_environment(), **_SINGLE_THREADED},
        )
        child = cls(process)
        ready = False
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                line = await child._line()
            if not line:
                child.kill()
                raise WorkerError(
                    f"a compiler process ended while it started{await child._how_it_ended()}"
                )
            child.toolchain = Hello.model_validate_json(line).toolchain
            child._first_bytes = child._bytes("VmSize")
            ready = True
        except TimeoutError:
            raise WorkerError(
                f"a compiler process was not ready after {START_TIMEOUT_S:.0f} s"
                f"{child._quoted_output()}"
            ) from None
        finally:
            if not ready:
                await child.end()
        return child

    @property
    def alive(self) -> bool:
        """Whether it can take a request."""
        return self.process.returncode is None and not self._killed

    async def compile(self, unit: CompileUnit) -> tuple[Built, bytes]:
        """The result for `unit`, and its code. It kills the process if `unit` exceeds its limits or
        the call is cancelled.
        """
        request = CompileRequest(id=self._next_id, unit=unit)
        self._next_id += 1
        answered = False
        try:
            try:
                async with asyncio.timeout(unit.timeout_s):
                    line, peak_bytes = await self._ask(request)
            except TimeoutError:
                await self.end()
                return (
                    Built(
                        status="timeout",
                        log=f"{unit.name}: compiling took longer than {unit.timeout_s:g} s",
                    ),
                    b"",
                )
            if not line:
                return await self._died(unit, peak_bytes), b""
            answer = CompileAnswer.model_validate_json(line)
            if answer.id != request.id or answer.built is None:
                raise WorkerError(
                    f"a compiler process failed on {unit.name}: expected an answer to {request.id},"
                    f" got one to {answer.id}\n{answer.fault}"
                )
            answered = True
            self.grown_bytes = self._bytes("VmSize") - self._first_bytes
            return answer.built, base64.b64decode(answer.code)
        finally:
            if not answered:
                self.kill()

    async def _ask(self, request: CompileRequest) -> tuple[bytes, int]:
        """The line of the answer (empty if the process died) and the peak memory until then."""
        reading = asyncio.create_task(self._line())
        peak_bytes = 0
        try:
            # it died before it read; the line below is then empty
            with contextlib.suppress(ConnectionError):
                self._stdin.write(request.model_dump_json().encode() + b"\n")
                await self._stdin.drain()
            while not (await asyncio.wait({reading}, timeout=_WATCH_EVERY_S))[0]:
                peak_bytes = max(peak_bytes, self._bytes("VmPeak"))
            return reading.result(), peak_bytes
        finally:
            if not reading.done():
                reading.cancel()

    async def _line(self) -> bytes:
        try:
            line = await self._stdout.readline()
        except (ValueError, ConnectionError):  # longer than MAX_LINE_BYTES, or the pipe broke
            return b""
        return line if line.endswith(b"\n") else b""

    def _bytes(self, field: str) -> int:
        """A field of /proc/PID/status in bytes; 0 when the process has ended."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0
        return next(
            (
                int(line.split()[1]) * 1024
                for line in status.splitlines()
                if line.startswith(f"{field}:")
            ),
            0,
        )

    async def _died(self, unit: CompileUnit, peak_bytes: int) -> Built:
        self.kill()
        words = await self._how_it_ended()
        code = self.process.returncode or 0
        if (
            "out of memory" in words
            or "bad_alloc" in words
            or peak_bytes > _NEAR_LIMIT * unit.memory_bytes
        ):
            return Built(
                status="out_of_memory",
                log=f"{unit.name}: compiling took more than {unit.memory_bytes} bytes of memory",
            )
        if code < 0 and -code not in _CRASHES:
            raise Killed(f"a compiler process ended while it compiled {unit.name}{words}")
        if code < 0:
            how = f"crashed on this source ({signal.Signals(-code).name})"
            return Built(
                status="compile_error",
                log=f"{unit.name}: error: the compiler itself {how}; write it differently",
            )
        return Built(
            status="failed",
            log=(
                f"{unit.name}: error: the compiler itself gave up on this source{words}; write it"
                " differently"
            ),
        )

    async def _how_it_ended(self) -> str:
        await self.process.wait()
        await asyncio.wait({self._listener}, timeout=1.0)
        code = self.process.returncode or 0
        cause = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f" ({cause}){self._quoted_output()}"

    def _quoted_output(self) -> str:
        return "; it printed: " + " | ".join(self._last_output) if self._last_output else ""

    async def _listen(self) -> None:
        """Drains what the compiler prints; a full pipe would stop it."""
        while chunk := await self._stderr.read(4096):
            for line in chunk.decode("utf-8", "replace").splitlines():
                self._last_output.append(line[:300])

    def kill(self) -> None:
        """Kills the process and all that it started; does not wait."""
        self._killed = True
        if self.process.returncode is None:
            for group in (*_children(self.process.pid), self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)

    async def end(self) -> None:
        """Kills the process and waits until it has ended."""
        self.kill()
        await self.process.wait()
        await self._listener
        self._stdin.close()
        with contextlib.suppress(ConnectionError):
            await self._stdin.wait_closed()
