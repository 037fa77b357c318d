"""Where changed kernels are compiled and launched."""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.evaluate.compile_candidate import CandidateCompiler
from evoengine.protocols import Device


@dataclass(frozen=True)
class Workbench:
    """A device, started for the task, and the compilers of its code."""

    compiler: CandidateCompiler
    device: Device

    @property
    def is_emulator(self) -> bool:
        """Whether kernels run on an emulator, for which clang compiles."""
        return self.compiler.clang is not None
