"""The emulator as its users see it: memory, programs, launches."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evoengine.emulator import targets
from evoengine.emulator.launch_report import ALL_CHECKS, Checks, LaunchReport
from evoengine.emulator.program import DEFAULT_FUEL, Parts, Program
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.run.jit import Jit
from evoengine.emulator.run.memory import DeviceMemory
from evoengine.emulator.targets import TargetGpu

__all__ = ["ALL_CHECKS", "DEFAULT_FUEL", "Checks", "Emulator", "LaunchReport", "Program"]

MEMORY_BYTES = 16 << 30  # of this machine, not of the target: what is not touched costs nothing


class Emulator:
    """A CUDA device made of this machine's cores."""

    def __init__(
        self,
        target: str | TargetGpu = "l4",
        threads: int | None = None,
        *,
        cache: Path | None = None,
        without: tuple[str, ...] = (),
    ) -> None:
        """`threads`: of this machine, all that this process may use by default. `without` masks CPU
        features, by how they begin.
        """
        self.target = target if isinstance(target, TargetGpu) else targets.find(target)
        self.threads = threads or len(os.sched_getaffinity(0))
        self.memory = DeviceMemory(MEMORY_BYTES)
        self.jit = Jit(cache, without)
        self._makers = ThreadPoolExecutor(self.threads, "evoengine-jit")

    def load(self, ptx: str) -> Program:
        """A program with its global variables at their initial values; raises PtxError,
        Unsupported, LaunchRefused.
        """
        return Program(
            Parts(self.target, self.threads, self.memory, self.jit, self._makers), parse(ptx)
        )

    def close(self) -> None:
        """Gives all memory back; programs and views must not be used any more."""
        self._makers.shutdown(cancel_futures=True)
        self.memory.close()
