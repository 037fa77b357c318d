"""The parent's side of the fork server, which starts workers in milliseconds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evoengine.errors import WorkerError
from evoengine.evaluate.bytecode_folder import bytecode_variables
from evoengine.evaluate.child_environment import child_environment
from evoengine.evaluate.device.fork_server import FORK, FORK_RUNNER, NUMBER, WAIT

START_S = 300.0  # torch's first import on a cold disk has taken a minute
ANSWER_S = 60.0
ENDING_S = 5.0
LOG_BYTES = 16 * 1024
# Only a process with one thread is forked safely. Workers compute on the GPU.
SINGLE_THREADED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class ForkedWorker:
    """A running worker: its process, our end of its connection, and the pipe of its output."""

    pid: int
    connection: socket.socket
    log: int


class ForkServer:
    """Forks workers that run `module`.serve(connection, arguments)."""

    def __init__(
        self, module: str, arguments: Sequence[str] = (), bytecode: Path | None = None
    ) -> None:
        """Compiled Python modules are kept in the folder `bytecode`, where Python keeps none."""
        self._bytecode = bytecode
        self._module = module
        self._arguments = list(arguments)
        self._process: asyncio.subprocess.Process | None = None
        self._connection: socket.socket | None = None
        self._turn = asyncio.Lock()

    async def fork(self, runner: bool = False, more: Sequence[socket.socket] = ()) -> ForkedWorker:
        """A new worker in a process group of its own; raises WorkerError, and DeviceError where the
        folder for compiled modules cannot be used.

        With `runner` it runs `module`.serve_runner; `more` holds another socket for it.
        """
        async with self._turn:
            await self._start()
            ours, theirs = socket.socketpair()
            log, written = os.pipe()
            descriptors = [theirs.fileno(), written, *(one.fileno() for one in more)]
            try:
                pid = await self._ask(FORK_RUNNER if runner else FORK, 0, descriptors)
            except BaseException:
                # a worker that was forked nevertheless ends when its connection is closed
                ours.close()
                os.close(log)
                raise
            finally:
                theirs.close()
                os.close(written)
            return ForkedWorker(pid, ours, log)

    async def wait(self, pid: int) -> int:
        """The exit code or negative signal of a worker, once it has ended; raises WorkerError."""
        await _until_ended(pid)  # others may fork meanwhile: a driver takes a while to clean up
        async with self._turn:
            if self._connection is None:
                return 0
            return await self._ask(WAIT, pid, [])

    async def close(self) -> None:
        """Kills the fork server and all its workers; may be called more than once."""
        process, self._process = self._process, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _start(self) -> None:
        if self._process is not None:
            return
        try:
            await self._start_process()
        except BaseException:
            await self.close()  # a half-started one would mistake the next request for its first
            raise

    async def _start_process(self) -> None:
        variables = bytecode_variables(self._bytecode) if self._bytecode else {}
        ours, theirs = socket.socketpair()
        command = [
            sys.executable,
            "-m",
            "evoengine.evaluate.device.fork_server",
            "--fd",
            str(theirs.fileno()),
            self._module,
            *self._arguments,
        ]
        ours.setblocking(False)
        self._connection = ours
        with theirs:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**child_environment(), **variables, **SINGLE_THREADED},
            )
        if not (await self._receive(1, START_S, until=b"\n")).endswith(b"\n"):
            raise WorkerError(
                f"{self._module} cannot be imported by a worker: {await self._error_line()}"
            )

    async def _ask(self, what: bytes, number: int, descriptors: list[int]) -> int:
        """The answer to one request; it is awaited even when cancelled, because the next request
        would read it as its own.
        """
        exchange = asyncio.create_task(self._exchange(what, number, descriptors))
        try:
            return await asyncio.shield(exchange)
        except asyncio.CancelledError:
            await asyncio.gather(exchange, return_exceptions=True)
            raise

    async def _exchange(self, what: bytes, number: int, descriptors: list[int]) -> int:
        assert self._connection is not None
        try:
            socket.send_fds(self._connection, [what + NUMBER.pack(number)], descriptors)
        except OSError:
            raise WorkerError(
                "the process that device workers are forked from is gone:"
                f" {await self._error_line()}"
            ) from None
        answer = await self._receive(NUMBER.size, ANSWER_S)
        if len(answer) < NUMBER.size:
            raise WorkerError(
                f"the process that device workers are forked from died: {await self._error_line()}"
            )
        return int(NUMBER.unpack(answer)[0])

    async def _receive(self, size: int, limit_s: float, until: bytes = b"") -> bytes:
        """`size` bytes, or all up to `until`; fewer when the fork server ended."""
        assert self._connection is not None
        loop, data = asyncio.get_running_loop(), b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(limit_s):
                while not (data.endswith(until) and until) and (until or len(data) < size):
                    chunk = await loop.sock_recv(
                        self._connection, size - len(data) if not until else 1
                    )
                    if not chunk:
                        break
                    data += chunk
        return data

    async def _error_line(self) -> str:
        """The last line that the fork server wrote to its standard error."""
        if self._process is None or self._process.stderr is None:
            return "it was closed"
        # its connection closes a moment before it has written the reason
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), ENDING_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        text = (await self._process.stderr.read()).decode(errors="replace").strip()
        return text.splitlines()[-1] if text else "it printed nothing"


async def _until_ended(pid: int) -> None:
    """Waits until a process has ended, raises WorkerError if it does not; returns at once where the
    system cannot watch processes.
    """
    try:
        watched = os.pidfd_open(pid)
    except (AttributeError, OSError):  # it has ended, or there is no such call: then WAIT waits
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(watched, ended.set)
    try:
        async with asyncio.timeout(ANSWER_S):
            await ended.wait()
    except TimeoutError:
        raise WorkerError(
            f"process {pid} was killed {ANSWER_S:.0f} s ago and has not ended: the driver is stuck"
        ) from None
    finally:
        loop.remove_reader(watched)
        os.close(watched)
