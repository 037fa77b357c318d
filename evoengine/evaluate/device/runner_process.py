"""The parent's side of a runner, which runs candidates for a grader."""

from __future__ import annotations

import socket

from evoengine.evaluate.device.forked_process import ForkedProcess


class RunnerProcess(ForkedProcess):
    """A runner; the grader talks to it, the parent starts, watches and kills it."""

    async def spawn(self) -> None:
        """Forks the process, which begins to start its device at once."""
        self._connection: socket.socket | None = await self.fork(runner=True)

    def hand_over(self, grader: socket.socket) -> None:
        """Sends our end of its connection to the grader, once."""
        assert self._connection is not None
        socket.send_fds(grader, [b"r"], [self._connection.fileno()])
        self._connection.close()
        self._connection = None

    @property
    def handed_over(self) -> bool:
        """Whether a grader has its connection."""
        return self._connection is None

    async def kill(self) -> None:
        """Kills the whole process group and waits for its end."""
        await super().kill()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
