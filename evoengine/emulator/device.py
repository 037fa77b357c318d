"""The emulator's interface: memory, programs, launches."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evoengine.emulator import targets
from evoengine.emulator.launch_report import ALL_CHECKS, Checks, LaunchReport
from evoengine.emulator.program import DEFAULT_FUEL, DeviceResources, Program
from evoengine.emulator.ptx.parser import parse
from evoengine.emulator.run.jit import Jit
from evoengine.emulator.run.memory import DeviceMemory
from evoengine.emulator.targets import TargetGpu

__all__ = ["ALL_CHECKS", "DEFAULT_FUEL", "Checks", "Emulator", "LaunchReport", "Program"]

# of this machine, not of the target; pages that are never touched cost nothing
MEMORY_BYTES = 16 << 30


class Emulator:
    """A CUDA device emulated on this machine's cores."""

    def __init__(
        self,
        target: str | TargetGpu = "l4",
        threads: int | None = None,
        *,
        cache: Path | None = None,
        without: tuple[str, ...] = (),
    ) -> None:
        """`threads`: host threads, by default as many as this process may use. `cache`: folder of
        the compiled C runtime. `without`: prefixes of CPU features not to use.
        """
        self.target = target if isinstance(target, TargetGpu) else targets.find(target)
        self.threads = threads or len(os.sched_getaffinity(0))
        self.memory = DeviceMemory(MEMORY_BYTES)
        self.jit = Jit(cache, without)
        self._codegen_threads = ThreadPoolExecutor(self.threads, "evoengine-jit")

    def load(self, ptx: str) -> Program:
        """The program of a PTX text, with its global variables initialised; raises PtxError,
        Unsupported, LaunchRefused.
        """
        return Program(
            DeviceResources(
                self.target, self.threads, self.memory, self.jit, self._codegen_threads
            ),
            parse(ptx),
        )

    def close(self) -> None:
        """Frees all memory; programs and views must not be used any more."""
        self._codegen_threads.shutdown(cancel_futures=True)
        self.memory.close()
