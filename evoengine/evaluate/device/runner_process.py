"""The parent's side of a runner, which runs candidates for a grader."""

from __future__ import annotations

import socket

from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.forked_process import ForkedProcess


class RunnerProcess(ForkedProcess):
    """A runner; the grader talks to it, the parent starts, watches and kills it."""

    def __init__(self, fork_server: ForkServer) -> None:
        super().__init__(fork_server)
        self.connection: socket.socket | None = None  # our end, until the grader has it

    async def spawn(self) -> None:
        """Forks the process, which begins to start its device at once."""
        self.connection = await self.fork(runner=True)

    async def kill(self) -> None:
        """Kills the whole process group and waits for the end of the process itself."""
        await super().kill()
        self.close_connection()

    def close_connection(self) -> None:
        """Closes our end of its connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
