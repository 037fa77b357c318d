"""A bound plan on the emulator: PTX loaded, arguments as bytes, faults as findings."""

from __future__ import annotations

import math
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from evoengine.candidate.binding import BoundLaunch, BufferArgument, ScalarArgument
from evoengine.emulator import device as emulated
from evoengine.emulator import emulator_errors
from evoengine.emulator.device import Checks, Emulator, LaunchReport
from evoengine.evaluate.worker.candidate_failures import (
    CandidateFailure,
    CannotLaunch,
    DeviceTrap,
    Endless,
    Lacking,
    Stumbled,
)
from evoengine.protocols import CompiledCase

# A sample of blocks gets its share of the rounds of the whole launch, but at least this one: blocks
# that take their work from a queue do all of it, however few run.
LEAST_SHARE = 1 / 16
LEAST_ROUNDS = 1 << 20  # of any launch

# What Python raises where our own code meets what nobody foresaw. Not among it: MemoryError and
# OSError, which are the machine's.
UNFORESEEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)

_TORCH_FLOATS = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


class LoadedModule:
    """The modules of one job: cases that share their code share what was compiled of it, for that
    takes longer than a launch.
    """

    def __init__(self, emulator: Emulator, alive: Callable[[], None]) -> None:
        """`alive` is called before every launch."""
        self._emulator = emulator
        self._alive = alive
        self._modules: dict[str, emulated.Program] = {}

    def program(self, compiled: CompiledCase, rounds: float) -> EmulatedProgram:
        """The code of one case with its global variables at their initial values; raises Finding.

        `rounds` of loops are what the warps of one launch of a whole grid may go.
        """
        module = self._module(compiled)
        with as_findings():
            module.reset()
        return EmulatedProgram(module, compiled, rounds, self._alive)

    def prepare(self, compiled: CompiledCase, checked: bool) -> None:
        """Begins to make the code of a case beside what is done meanwhile; raises Finding."""
        module = self._module(compiled)
        for launch in compiled.plan.launches:
            module.start_compiling(compiled.functions[launch.kernel], three(launch.block), checked)

    def variable_bytes(self, compiled: CompiledCase) -> int:
        """What the global variables of a case take; raises Finding."""
        return self._module(compiled).variable_bytes

    def _module(self, compiled: CompiledCase) -> emulated.Program:
        path = compiled.code_path
        if path not in self._modules:
            with as_findings():
                self._modules[path] = self._emulator.load(Path(path).read_text(encoding="utf-8"))
        return self._modules[path]

    def settled(self, timeout_s: float) -> bool:
        """Whether no code is being made any more that nobody will run, after at most so long for
        each.
        """
        return all(module.cancel_codegen(timeout_s) for module in self._modules.values())

    def forget(self) -> None:
        """Lets all of them go: another candidate comes."""
        for module in self._modules.values():
            module.close()
        self._modules.clear()


class EmulatedProgram:
    """The code of one case."""

    def __init__(
        self,
        module: emulated.Program,
        compiled: CompiledCase,
        rounds: float,
        alive: Callable[[], None],
    ) -> None:
        self.compiled = compiled
        self._rounds = rounds
        self._module = module
        self._alive = alive

    @property
    def variables(self) -> bytes:
        """What the variables of the code hold now; setting it gives them back what they held."""
        return self._module.variable_values

    @variables.setter
    def variables(self, kept: bytes) -> None:
        self._module.variable_values = kept

    def run(
        self,
        launch: BoundLaunch,
        pointers: Mapping[str, int],
        checks: Checks | None = None,
        blocks: Sequence[int] | None = None,
        most_rounds: int | None = None,
    ) -> LaunchReport:
        """What one launch of the plan did; raises Finding, Endless after `most_rounds` of loops at
        the latest.
        """
        self._alive()
        symbol = self.compiled.functions[launch.kernel]
        with as_findings():
            report = self._module.launch(
                symbol,
                grid=three(launch.grid),
                block=three(launch.block),
                args=[_bytes(argument, pointers) for argument in launch.args],
                shared_bytes=launch.shared_bytes,
                checks=checks,
                blocks=blocks,
                fuel=min(self._fuel(launch, blocks), most_rounds or sys.maxsize),
            )
        if report.printed:
            # the parent keeps the end of it, whatever the locale
            sys.stdout.buffer.write(report.printed.encode("utf-8", "replace"))
            sys.stdout.buffer.flush()
        return report

    def _fuel(self, launch: BoundLaunch, blocks: Sequence[int] | None) -> int:
        share = 1.0 if blocks is None else max(LEAST_SHARE, len(blocks) / math.prod(launch.grid))
        return max(LEAST_ROUNDS, int(self._rounds * share))


@contextmanager
def as_findings() -> Iterator[None]:
    """Turns what the emulator raises into what it says about the candidate, whose code alone brings
    it to fail.
    """
    try:
        yield
    except emulator_errors.EmulatorError as error:
        raise finding_of(error) from None
    except UNFORESEEN as error:
        raise Stumbled(
            f"the emulator fails on this kernel: {type(error).__name__}: {error}",
            traceback.format_exc(),
        ) from error


def finding_of(error: emulator_errors.EmulatorError) -> CandidateFailure:
    """What an error of the emulator says about the candidate that it was raised for."""
    if isinstance(error, emulator_errors.OutOfFuel):
        return Endless(str(error))
    if isinstance(error, emulator_errors.KernelFault):
        return DeviceTrap(str(error))
    if isinstance(error, emulator_errors.LaunchRefused):
        return CannotLaunch(str(error))
    return Lacking(str(error))  # Unsupported, and PTX of our own compiler that we cannot read


def three(extents: tuple[int, ...]) -> tuple[int, int, int]:
    """A grid or block with all three extents."""
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def _bytes(argument: BufferArgument | ScalarArgument, pointers: Mapping[str, int]) -> bytes:
    """An argument as it lies in the parameter buffer; integers have 8 bytes, of which the kernel's
    parameter takes its own.
    """
    if isinstance(argument, BufferArgument):
        return struct.pack("<Q", pointers[argument.buffer])
    if argument.dtype in _TORCH_FLOATS:
        return bytes(
            torch.tensor(argument.scalar, dtype=_TORCH_FLOATS[argument.dtype])
            .reshape(1)
            .view(torch.uint8)
            .tolist()
        )
    return struct.pack("<q", int(argument.scalar))
