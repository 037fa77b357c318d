"""The parent's side of one device worker process: requests, log, time limits, kill."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable

from evoengine.errors import DeviceError, TaskError, WorkerError
from evoengine.evaluate.device.fork_client import ForkedWorker, ForkServer
from evoengine.evaluate.device.worker_protocol import (
    ANSWER,
    MAX_LINE_BYTES,
    Done,
    Failed,
    Ready,
    Run,
    Start,
    StepBegun,
)

LOG_BYTES = 64 * 1024  # of the end of a worker's output, device printf included
OWN_STEP_S = 300.0  # torch.compile tunes a baseline for a minute in one step
DRAIN_S = 1.0  # for the rest of a dead worker's output
_FAULTS = {"task": TaskError, "device": DeviceError, "worker": WorkerError}


class StepTimeout(Exception):  # noqa: N818 - becomes a status
    """A step took too long, or all of a candidate's steps together; `step` is the current step."""

    def __init__(self, step: StepBegun, seconds: float) -> None:
        super().__init__(f"nothing after {seconds:.3g} s while {step.what}")
        self.step = step
        self.seconds = seconds


class WorkerDied(Exception):  # noqa: N818 - becomes a status
    """The worker's process ended during `step`."""

    def __init__(self, step: StepBegun, how: str, log: str) -> None:
        super().__init__(f"worker ended with {how} while {step.what}")
        self.step = step
        self.how = how
        self.log = log


class WorkerProcess:
    """A forked worker in its own process group, at the other end of a socket pair."""

    def __init__(self, fork_server: ForkServer) -> None:
        self._fork_server = fork_server
        self._fork: ForkedWorker | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._printed: asyncio.StreamReader | None = None
        self._pipe: asyncio.ReadTransport | None = None
        self._drain: asyncio.Task[None] | None = None
        self._log = bytearray()
        self._last_id = 0
        self.jobs = 0  # number of candidates that it has run

    @property
    def log(self) -> str:
        """The end of its output."""
        return self._log.decode(errors="replace")

    @property
    def pid(self) -> int | None:
        """Its process; None before it was forked and after it was killed."""
        return self._fork.pid if self._fork else None

    async def spawn(self) -> None:
        """Forks the process; it answers requests from now on."""
        self._fork = await self._fork_server.fork()
        self._reader, self._writer = await asyncio.open_connection(
            sock=self._fork.connection, limit=MAX_LINE_BYTES
        )
        self._printed = asyncio.StreamReader()
        loop, printed = asyncio.get_running_loop(), self._printed
        self._pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(printed), os.fdopen(self._fork.log, "rb")
        )
        self._drain = asyncio.create_task(self._keep_log())

    async def ask(
        self,
        make: Callable[[int], Start | Run],
        progress: Callable[[str], None],
        candidate_step_s: float,
        total_s: float,
        function_s: float = OWN_STEP_S,
    ) -> Ready | Done:
        """Sends one request and waits for its answer.

        `candidate_step_s` limits a step of the candidate, `total_s` all of them together,
        `function_s` one call of the task's functions. Raises StepTimeout or WorkerDied, or
        TaskError, DeviceError, WorkerError as the worker reports.
        """
        assert self._writer is not None
        self._last_id += 1
        self._log.clear()  # drops the output of earlier candidates
        step = StepBegun(id=self._last_id, what="starting", candidate=False)
        left_s = total_s
        with contextlib.suppress(ConnectionError):  # the read below reports how it ended
            self._writer.write(make(self._last_id).model_dump_json().encode() + b"\n")
            await self._writer.drain()
        while True:
            since = time.monotonic()
            allowed_s = (
                min(candidate_step_s, max(0.0, left_s))
                if step.candidate
                else function_s
                if step.function
                else OWN_STEP_S
            )
            line = await self._line(step, allowed_s)
            left_s -= (time.monotonic() - since) * step.candidate
            answer = ANSWER.validate_json(line)
            if answer.id != self._last_id:
                continue  # of an abandoned request
            if isinstance(answer, StepBegun):
                step = answer
                progress(answer.what)
            elif isinstance(answer, Failed):
                raise _FAULTS[answer.error](answer.message)
            else:
                return answer

    async def kill(self) -> None:
        """Kills the whole process group and waits for its end."""
        fork, self._fork = self._fork, None
        if fork is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(fork.pid, signal.SIGKILL)
        # a fork server that has ended has ended its workers, too
        with contextlib.suppress(WorkerError):
            await self._fork_server.wait(fork.pid)
        if self._drain:
            self._drain.cancel()
            await asyncio.wait([self._drain])
        if self._pipe:
            self._pipe.close()
        if self._writer:
            self._writer.close()
            with contextlib.suppress(ConnectionError):
                await self._writer.wait_closed()

    async def _line(self, step: StepBegun, allowed_s: float) -> bytes:
        assert self._reader is not None
        try:
            line = await asyncio.wait_for(self._reader.readline(), allowed_s)
        except TimeoutError:
            raise StepTimeout(step, allowed_s) from None
        except (ConnectionError, ValueError):  # ValueError: longer than any report
            line = b""
        if not line.endswith(b"\n"):
            raise WorkerDied(step, await self._how_it_ended(), self.log)
        return line

    async def _how_it_ended(self) -> str:
        assert self._fork is not None and self._drain is not None
        code = await self._fork_server.wait(self._fork.pid)
        await asyncio.wait([self._drain], timeout=DRAIN_S)
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    async def _keep_log(self) -> None:
        """Reads all output, so that a flood of it neither blocks the worker nor fills memory."""
        assert self._printed is not None
        while chunk := await self._printed.read(LOG_BYTES):
            self._log += chunk
            del self._log[:-LOG_BYTES]
