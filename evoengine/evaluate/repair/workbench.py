"""Where changed kernels are compiled and launched."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.protocols import Device


async def _runs_already() -> None: ...


@dataclass(frozen=True)
class Workbench:
    """A device for the task, and the compilers of its code."""

    compiler: CandidateCompiler
    device: Device
    # may be asked for more than once; raises EvoError
    start: Callable[[], Coroutine[Any, Any, None]] = _runs_already

    @property
    def is_emulator(self) -> bool:
        """Whether kernels run on an emulator, for which clang compiles."""
        return self.compiler.clang is not None
