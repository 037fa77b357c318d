"""Fork servers that stay for the next test: importing torch takes one five seconds of a core. Each
device still has workers of its own.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from evoengine.config import CHECKS
from evoengine.digest import digest
from evoengine.evaluate.device.fork_client import ForkServer
from evoengine.evaluate.device.worker_device import WorkerDevice, emulator_device
from evoengine.evaluate.worker.emulated.secret_sets import SEEDS_FILE

Result = TypeVar("Result")


class KeptForkServer(ForkServer):
    """Is not closed with the device that it has."""

    async def close(self) -> None:
        if self._process is not None and self._process.returncode is not None:
            await self.end()  # it has died, so the next test starts another

    async def end(self) -> None:
        await super().close()


class KeptForkServers:
    """Fork servers by module and arguments, and the event loop in which they run."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="evoengine-tests-")
        self._runner = asyncio.Runner()
        self._servers: dict[tuple[str, ...], KeptForkServer] = {}

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What `work` returns; its devices are those of `device`."""
        return self._runner.run(work)

    def server(self, module: str, arguments: Sequence[str] = ()) -> KeptForkServer:
        """The one that forks workers of `module`, the same for the same arguments."""
        return self._servers.setdefault((module, *arguments), KeptForkServer(module, arguments))

    def device(self, target: str, seeds: str = "", threads: int | None = None) -> WorkerDevice:
        """An emulator with all checks that was not started; its references are cached for all
        tests. `seeds` stands for the secret that inputs are drawn by.
        """
        folder = Path(self._folder.name, f"{target} {digest(seeds)}")
        if seeds:
            folder.mkdir(exist_ok=True)
            folder.joinpath(SEEDS_FILE).write_text(seeds)
        made = emulator_device(target, CHECKS, folder, threads)
        own = made._fork_server
        made._fork_server = self.server(own._module, own._arguments)
        return made

    def close(self) -> None:
        for server in self._servers.values():
            self._runner.run(server.end())
        self._runner.close()
        self._folder.cleanup()


@cache
def kept() -> KeptForkServers:
    """Those of this process; conftest.py closes them."""
    return KeptForkServers()
