"""One process that was forked from the fork server: its output, its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Sequence

from evoengine.errors import WorkerError
from evoengine.evaluate.device.fork_client import ForkedWorker, ForkServer

LOG_BYTES = 64 * 1024  # of the end of a process's output, device printf included
DRAIN_S = 1.0  # for the rest of a dead process's output


class ForkedProcess:
    """A forked process in its own process group."""

    def __init__(self, fork_server: ForkServer) -> None:
        self._fork_server = fork_server
        self._fork: ForkedWorker | None = None
        self._printed: asyncio.StreamReader | None = None
        self._pipe: asyncio.ReadTransport | None = None
        self._drain: asyncio.Task[None] | None = None
        self._log = bytearray()
        self.jobs = 0  # number of candidates that it has run

    @property
    def log(self) -> str:
        """The end of its output."""
        return self._log.decode(errors="replace")

    @property
    def pid(self) -> int | None:
        """Its process; None before it was forked and after it was killed."""
        return self._fork.pid if self._fork else None

    def clear_log(self) -> None:
        """Drops the output of earlier candidates."""
        self._log.clear()

    async def fork(self, runner: bool = False, more: Sequence[socket.socket] = ()) -> socket.socket:
        """Forks the process, as ForkServer.fork; returns our end of its connection."""
        self._fork = await self._fork_server.fork(runner, more)
        self._printed = asyncio.StreamReader()
        loop, printed = asyncio.get_running_loop(), self._printed
        log = os.fdopen(self._fork.log, "rb")
        try:
            self._pipe, _ = await loop.connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(printed), log
            )
        except BaseException:  # nobody else has its connection; `kill` ends it
            self._fork.connection.close()
            log.close()
            raise
        self._drain = asyncio.create_task(self._keep_log())
        return self._fork.connection

    @property
    def ended(self) -> asyncio.Task[None]:
        """Done once the process has closed its output, which it does when it ends."""
        assert self._drain is not None
        return self._drain

    def send_kill(self) -> None:
        """Sends SIGKILL to the whole process group."""
        if self._fork is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._fork.pid, signal.SIGKILL)

    async def kill(self) -> None:
        """Kills the whole process group and waits for the end of the process itself."""
        self.send_kill()
        fork, self._fork = self._fork, None
        if fork is None:
            return
        # a fork server that has ended has ended its workers, too
        with contextlib.suppress(WorkerError):
            await self._fork_server.wait(fork.pid)
        await self._close()

    async def how_it_ended(self) -> str:
        """The exit code or signal of a process that ends or has ended; waits for its output."""
        assert self._fork is not None and self._drain is not None
        code = await self._fork_server.wait(self._fork.pid)
        await asyncio.wait([self._drain], timeout=DRAIN_S)
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    async def _close(self) -> None:
        if self._drain:
            self._drain.cancel()
            await asyncio.wait([self._drain])
        if self._pipe:
            self._pipe.close()

    async def _keep_log(self) -> None:
        """Reads all output, so that a flood of it neither blocks the process nor fills memory."""
        assert self._printed is not None
        while chunk := await self._printed.read(LOG_BYTES):
            self._log += chunk
            del self._log[:-LOG_BYTES]
