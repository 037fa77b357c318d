"""Loads PTX into the emulator and launches bound plans; its errors become candidate failures."""

from __future__ import annotations

import math
import struct
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from evoengine.candidate.binding import BoundLaunch, BufferArgument, ScalarArgument
from evoengine.emulator import device as emulated
from evoengine.emulator import emulator_errors
from evoengine.emulator.device import Checks, Emulator, LaunchReport
from evoengine.evaluate.worker.arena import POISON
from evoengine.evaluate.worker.candidate_failures import (
    BlockDeadlock,
    CandidateFailure,
    CannotLaunch,
    DeviceTrap,
    EmulatorFailure,
    LaunchTimeout,
    UnsupportedKernel,
)
from evoengine.protocols import CompiledCase

# A sample of blocks gets its share of the whole launch's loop rounds, but at least this share:
# blocks that take their work from a queue do all of it, however few run.
MIN_SHARE = 1 / 16
MIN_ROUNDS = 1 << 20  # of any launch

# What Python raises for a bug of the emulator. MemoryError and OSError are the machine's faults.
EMULATOR_BUGS = (
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
    """The modules of one job.

    Cases with the same PTX share one, because compiling it takes longer than a launch.
    """

    def __init__(self, emulator: Emulator, alive: Callable[[], None]) -> None:
        """`alive` is called before every launch."""
        self._emulator = emulator
        self._alive = alive
        self._modules: dict[str, emulated.Program] = {}

    def program(
        self, compiled: CompiledCase, rounds: float, max_rounds: int | None = None
    ) -> EmulatedProgram:
        """The code of one case; raises CandidateFailure.

        `rounds` limits the loop rounds of all warps of one launch of a whole grid, `max_rounds`
        those of any launch.
        """
        module = self._module(compiled)
        return EmulatedProgram(module, compiled, rounds, self._alive, max_rounds)

    def prepare(self, compiled: CompiledCase, checked: bool) -> None:
        """Begins to compile the code of a case in the background; raises CandidateFailure."""
        module = self._module(compiled)
        for launch in compiled.plan.launches:
            module.start_compiling(compiled.functions[launch.kernel], three(launch.block), checked)

    def variable_bytes(self, compiled: CompiledCase) -> int:
        """The size of a case's global variables in bytes; raises CandidateFailure."""
        return self._module(compiled).variable_bytes

    def _module(self, compiled: CompiledCase) -> emulated.Program:
        path = compiled.code_path
        if path not in self._modules:
            with as_candidate_failures():
                self._modules[path] = self._emulator.load(Path(path).read_text(encoding="utf-8"))
        return self._modules[path]

    def compilations_ended(self, timeout_s: float, besides: Collection[str] = ()) -> bool:
        """Whether no compilation is still running but of the PTX files `besides`; waits up to
        `timeout_s` for each module.
        """
        return all(
            module.cancel_codegen(timeout_s)
            for path, module in self._modules.items()
            if path not in besides
        )

    def forget(self, besides: Collection[str] = ()) -> None:
        """Closes all modules but those of the PTX files `besides`, before another candidate."""
        for path in self._modules.keys() - set(besides):
            self._modules.pop(path).close()


class EmulatedProgram:
    """The code of one case."""

    def __init__(
        self,
        module: emulated.Program,
        compiled: CompiledCase,
        rounds: float,
        alive: Callable[[], None],
        max_rounds: int | None = None,
    ) -> None:
        self.compiled = compiled
        self._rounds = rounds
        self._max_rounds = max_rounds or sys.maxsize
        self._module = module
        self._alive = alive
        self.most_rounds = 0  # of loops that a host thread ran in one launch so far
        self.poison = POISON  # the byte that shared and local memory hold first

    def reset(self, poison: int) -> None:
        """Resets all global variables, at another address; raises CandidateFailure.

        From now on, shared and local memory hold the byte `poison` first.
        """
        self.poison = poison
        with as_candidate_failures():
            self._module.reset()

    @property
    def variables(self) -> bytes:
        """The contents of the code's global variables, a copy; assignment restores them."""
        return self._module.variable_values

    @variables.setter
    def variables(self, contents: bytes) -> None:
        self._module.variable_values = contents

    def run(
        self,
        launch: BoundLaunch,
        pointers: Mapping[str, int],
        checks: Checks | None = None,
        blocks: Sequence[int] | None = None,
        max_rounds: int | None = None,
    ) -> LaunchReport:
        """The report of one launch of the plan, or of some of its `blocks`.

        `pointers` holds the device address of each buffer by name. Raises CandidateFailure, and
        LaunchTimeout after `max_rounds` loop rounds at the latest.
        """
        self._alive()
        symbol = self.compiled.functions[launch.kernel]
        with as_candidate_failures():
            report = self._module.launch(
                symbol,
                grid=three(launch.grid),
                block=three(launch.block),
                args=[_bytes(argument, pointers) for argument in launch.args],
                shared_bytes=launch.shared_bytes,
                checks=checks,
                blocks=blocks,
                fuel=min(self._fuel(launch, blocks), max_rounds or sys.maxsize),
                poison=self.poison,
            )
        self.most_rounds = max(self.most_rounds, report.rounds)
        # what is printed in a hidden case could tell its sizes
        if report.printed and not self.compiled.plan.hidden:
            # bytes, so that the locale does not matter to the parent
            sys.stdout.buffer.write(report.printed.encode("utf-8", "replace"))
            sys.stdout.buffer.flush()
        return report

    def _fuel(self, launch: BoundLaunch, blocks: Sequence[int] | None) -> int:
        share = 1.0 if blocks is None else max(MIN_SHARE, len(blocks) / math.prod(launch.grid))
        return min(max(MIN_ROUNDS, int(self._rounds * share)), self._max_rounds)


@contextmanager
def as_candidate_failures() -> Iterator[None]:
    """Raises errors of the emulator as failures of the candidate, whose code caused them."""
    try:
        yield
    except emulator_errors.EmulatorError as error:
        raise failure_of(error) from None
    except EMULATOR_BUGS as error:
        raise EmulatorFailure(
            f"the emulator fails on this kernel: {type(error).__name__}: {error}",
            traceback.format_exc(),
        ) from error


def failure_of(error: emulator_errors.EmulatorError) -> CandidateFailure:
    """An error of the emulator as a failure of the candidate."""
    if isinstance(error, emulator_errors.Deadlock):
        return BlockDeadlock(str(error), error.strays)
    if isinstance(error, emulator_errors.OutOfFuel):
        return LaunchTimeout(str(error), error.strays)
    if isinstance(error, emulator_errors.KernelFault):
        return DeviceTrap(str(error))
    if isinstance(error, emulator_errors.LaunchRefused):
        return CannotLaunch(str(error))
    return UnsupportedKernel(
        str(error)
    )  # Unsupported, and PTX of our own compiler that we cannot read


def three(extents: tuple[int, ...]) -> tuple[int, int, int]:
    """The extents of a grid or block in all three dimensions."""
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def _bytes(argument: BufferArgument | ScalarArgument, pointers: Mapping[str, int]) -> bytes:
    """An argument's bytes in the parameter buffer, little-endian; integers have 8, of which a
    smaller parameter takes the first.
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
