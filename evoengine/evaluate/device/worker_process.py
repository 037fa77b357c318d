"""The parent's side of one device worker process: requests, log, time limits, kill."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable

from evoengine.errors import DeviceError, TaskError, WorkerError
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.forked_process import ForkedProcess
from evoengine.evaluate.device.worker_protocol import (
    ANSWER,
    MAX_LINE_BYTES,
    Done,
    Failed,
    RaceDone,
    Ready,
    Run,
    RunRace,
    Start,
    StepBegun,
)

OWN_STEP_S = 300.0  # torch.compile tunes a baseline for a minute in one step
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


class WorkerProcess(ForkedProcess):
    """A forked worker in its own process group, at the other end of a socket pair."""

    def __init__(self, fork_server: ForkServer) -> None:
        super().__init__(fork_server)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._last_id = 0

    async def spawn(self, *more: socket.socket) -> None:
        """Forks the process; it answers requests from now on. `more`: another socket for it."""
        connection = await self.fork(more=more)
        self._reader, self._writer = await asyncio.open_connection(
            sock=connection, limit=MAX_LINE_BYTES
        )

    async def ask(
        self,
        make: Callable[[int], Start | Run | RunRace],
        progress: Callable[[str], None],
        candidate_step_s: float,
        total_s: float,
        function_s: float = OWN_STEP_S,
        end_candidate: Callable[[], Awaitable[None]] | None = None,
    ) -> Ready | Done | RaceDone:
        """Sends one request and waits for its answer.

        `candidate_step_s` limits a step of the candidate, `total_s` all of them together,
        `function_s` one call of the task's functions. Raises StepTimeout or WorkerDied, or
        TaskError, DeviceError, WorkerError as the worker reports. `end_candidate` ends a candidate
        that runs in another process: the worker then answers, and is as healthy as before.
        """
        assert self._writer is not None
        self._last_id += 1
        self.clear_log()
        timeout: StepTimeout | None = None
        step = StepBegun(id=self._last_id, what="starting", candidate=False)
        left_s = total_s
        with contextlib.suppress(ConnectionError):  # the read below reports how it ended
            self._writer.write(make(self._last_id).model_dump_json().encode() + b"\n")
            await self._writer.drain()
        while True:
            since = time.monotonic()
            allowed_s = (
                min(candidate_step_s, max(0.0, left_s))
                if step.candidate and timeout is None
                else function_s
                if step.function
                else OWN_STEP_S
            )
            try:
                line = await self._line(step, allowed_s)
            except StepTimeout as error:
                if end_candidate is None or not step.candidate or timeout is not None:
                    raise
                timeout = error
                await end_candidate()
                continue
            left_s -= (time.monotonic() - since) * step.candidate
            answer = ANSWER.validate_json(line)
            if answer.id != self._last_id:
                continue  # of an abandoned request
            if isinstance(answer, StepBegun):
                step = answer
                progress(answer.what)
            elif isinstance(answer, Failed):
                raise _FAULTS[answer.error](answer.message)
            elif timeout is not None:
                raise timeout
            else:
                return answer

    async def kill(self) -> None:
        """Kills the whole process group and waits for the end of the process itself."""
        await super().kill()
        writer, self._writer = self._writer, None
        if writer:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _line(self, step: StepBegun, allowed_s: float) -> bytes:
        assert self._reader is not None
        try:
            line = await asyncio.wait_for(self._reader.readline(), allowed_s)
        except TimeoutError:
            raise StepTimeout(step, allowed_s) from None
        except (ConnectionError, ValueError):  # ValueError: longer than any report
            line = b""
        if not line.endswith(b"\n"):
            raise WorkerDied(step, await self.how_it_ended(), self.log)
        return line
