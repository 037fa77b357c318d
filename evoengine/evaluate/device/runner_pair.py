"""Two runners, one for shown cases and one for hidden ones: started, handed over and killed as one.

What a candidate notes in a hidden case, in device memory that outlives the case, stays in a process
that runs no shown case and whose output is not reported.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from evoengine.errors import WorkerError
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.runner_process import RunnerProcess

ENDING_S = 60.0  # for the driver to clean up after a process


class RunnerPair:
    """The runners of a grader; without a second one where the task has no hidden cases."""

    def __init__(self, fork_server: ForkServer, has_hidden: bool) -> None:
        self.shown = RunnerProcess(fork_server)
        self.hidden = RunnerProcess(fork_server) if has_hidden else None
        self.handed_over = False  # whether a grader has their connections
        self.number = 0  # by which that grader knows them
        self.jobs = 0  # number of candidates that they have run

    @property
    def log(self) -> str:
        """The end of the output of shown cases."""
        return self.shown.log

    @property
    def pids(self) -> tuple[int | None, int | None]:
        """The processes for shown and for hidden cases."""
        return self.shown.pid, self.hidden.pid if self.hidden else None

    def clear_log(self) -> None:
        """Drops the output of earlier candidates."""
        for one in self._all:
            one.clear_log()

    async def spawn(self) -> None:
        """Forks the processes, which begin to start their device at once."""
        try:
            for one in self._all:
                await one.spawn()
        except BaseException:
            await self.kill()
            raise

    def hand_over(self, grader: socket.socket, number: int) -> None:
        """Sends our ends of their connections to the grader, in one message, once."""
        self.number = number
        ours = [one.connection.fileno() for one in self._all if one.connection is not None]
        socket.send_fds(grader, [b"r"], ours)
        self.handed_over = True
        for one in self._all:
            one.close_connection()

    def send_kill(self) -> None:
        """Sends SIGKILL to both process groups."""
        for one in self._all:
            one.send_kill()

    async def kill(self) -> None:
        """Kills both process groups and waits for their ends."""
        self.send_kill()  # to both before the first wait, which may be cancelled
        for one in self._all:
            await one.kill()

    @property
    def _all(self) -> list[RunnerProcess]:
        return [self.shown, *([self.hidden] if self.hidden else [])]


async def first_ended(pairs: Sequence[RunnerPair]) -> RunnerProcess:
    """The runner that has ended; waits until one has. Raises WorkerError if none does."""
    runners = [one for pair in pairs for one in pair._all]
    await asyncio.wait(
        [one.ended for one in runners], timeout=ENDING_S, return_when=asyncio.FIRST_COMPLETED
    )
    for one in runners:
        if one.ended.done():
            return one
    raise WorkerError("a runner closed its connection and did not end")
