"""Counts of a kernel's configuration from the emulator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy
import torch

from evoengine.candidate import kernel_file as candidates
from evoengine.candidate.arch import DeviceLimits
from evoengine.candidate.binding import BoundLaunch, BufferArgument, CasePlan, ScalarArgument, bind
from evoengine.emulator.check.findings import Check
from evoengine.emulator.device import Checks, Emulator
from evoengine.emulator.emulator_errors import OutOfFuel
from evoengine.emulator.front.clang import compile_cuda
from evoengine.emulator.targets import find
from evoengine.emulator.timing_model.counts import Counts
from evoengine.emulator.timing_model.launch_counts import counts_from_reports
from evoengine.evaluate.worker.check import layout_of
from evoengine.evaluate.worker.inputs import make_inputs
from evoengine.paths import find_kernel, find_task
from evoengine.task import schema as tasks
from evoengine.task.load import load_task

SAMPLE_FUEL = 1 << 26  # rounds of loops of a sample; a block that waits for another has no end
SAMPLED_BLOCKS = 8  # in checked mode, which counts memory traffic


class Bench:
    """An emulator with one task's inputs at a time."""

    def __init__(self, target: str, threads: int = 2) -> None:
        self._target = find(target)
        self._threads = threads

    def counts(
        self, seed: str, task_name: str, case: str, tunables: Mapping[str, int]
    ) -> list[Counts]:
        """The counts of each launch of the configuration on normally distributed inputs; `seed` is
        a packaged one or the path of a kernel. Raises EmulatorError.
        """
        task = load_task(find_task(task_name))
        candidate = candidates.parse(find_kernel(seed).read_text(encoding="utf-8")).tuned(
            dict(tunables)
        )
        plan = bind(
            candidate,
            task,
            case,
            DeviceLimits(self._target.arch, self._target.shared_per_block, self._target.sms),
        )
        emulator = Emulator(target=self._target.name, threads=self._threads)
        addresses = self._filled(emulator, task, plan)
        kernels = sorted({launch.kernel for launch in plan.launches})
        # the emulator has nothing that only sm_90 has
        arch = "sm_89" if self._target.arch == "sm_90" else self._target.arch
        compiled = compile_cuda(
            candidate.code,
            name=f"{Path(seed).stem}.cu",
            macros=plan.macros,
            arch=arch,
            kernels=kernels,
        )
        try:
            return [
                self._run(
                    emulator, compiled.ptx, compiled.functions[launch.kernel], launch, addresses
                )
                for launch in plan.launches
            ]
        finally:
            emulator.close()

    @staticmethod
    def _filled(emulator: Emulator, task: tasks.Task, plan: CasePlan) -> dict[str, int]:
        """Every buffer of the plan, the inputs filled in: name -> address."""
        inputs = make_inputs(task, plan.case, "normal", 0, torch.device("cpu"))
        addresses = {}
        for name, (dtype, shape) in layout_of(task, plan).items():
            size = int(numpy.prod(shape)) * dtype.itemsize
            addresses[name] = emulator.memory.allocate(size, name=name)
            if name in inputs:
                emulator.memory.view(addresses[name], size)[:] = (
                    inputs[name].contiguous().view(torch.uint8).flatten().numpy()
                )
        for fill in plan.fills:
            value = (
                emulator.memory.view(addresses[fill.source], fill.bytes)
                if fill.source
                else numpy.resize(
                    numpy.frombuffer(bytes.fromhex(fill.element), numpy.uint8), fill.bytes
                )
            )
            emulator.memory.view(addresses[fill.buffer], fill.bytes)[:] = value
        return addresses

    @staticmethod
    def _run(
        emulator: Emulator, ptx: str, symbol: str, launch: BoundLaunch, addresses: Mapping[str, int]
    ) -> Counts:
        """A fast run of the whole grid for what every warp executes, and a checked one of a few
        blocks for its memory. Both find the same buffers, so that a queue is not used up for the
        second; what the whole grid wrote is left to the next launch.
        """
        program = emulator.load(ptx)
        before = _contents(emulator, addresses)
        args = [_bytes(argument, addresses) for argument in launch.args]
        grid, block = _three(launch.grid), _three(launch.block)
        whole = program.launch(
            symbol, grid=grid, block=block, args=args, shared_bytes=launch.shared_bytes
        )
        after = _contents(emulator, addresses)
        _restore(emulator, addresses, before)
        touched = {
            argument.buffer for argument in launch.args if isinstance(argument, BufferArgument)
        }
        sample = sorted(
            {
                round(position)
                for position in numpy.linspace(
                    0, whole.blocks - 1, min(whole.blocks, SAMPLED_BLOCKS)
                )
            }
        )
        counting = partial(
            program.launch,
            symbol,
            grid=grid,
            block=block,
            args=args,
            shared_bytes=launch.shared_bytes,
            checks=Checks(Check(0)),  # accesses only: nothing is looked for
        )
        try:
            checked = counting(blocks=sample, fuel=SAMPLE_FUEL)
        except OutOfFuel:  # blocks that wait for blocks outside of the sample
            _restore(emulator, addresses, before)
            checked = counting()
        _restore(emulator, addresses, after)
        program.close()
        unique_bytes = sum(emulator.memory.buffers[addresses[name]].bytes for name in touched)
        return counts_from_reports(whole, checked, unique_bytes=unique_bytes)


def _contents(emulator: Emulator, addresses: Mapping[str, int]) -> dict[str, bytes]:
    """What every buffer holds."""
    buffers = emulator.memory.buffers
    return {
        name: emulator.memory.view(at, buffers[at].bytes).tobytes()
        for name, at in addresses.items()
    }


def _restore(
    emulator: Emulator, addresses: Mapping[str, int], contents: Mapping[str, bytes]
) -> None:
    for name, kept in contents.items():
        emulator.memory.view(addresses[name], len(kept))[:] = numpy.frombuffer(kept, numpy.uint8)


def _bytes(argument: BufferArgument | ScalarArgument, addresses: Mapping[str, int]) -> bytes:
    """The bytes of an argument; an integer in eight, of which the launch takes as many as the
    parameter has.
    """
    if isinstance(argument, BufferArgument):
        return addresses[argument.buffer].to_bytes(8, "little")
    if argument.dtype in ("float16", "float32", "float64"):
        return numpy.array(argument.scalar, dtype=argument.dtype).tobytes()
    return int(argument.scalar).to_bytes(8, "little", signed=True)


def _three(extents: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z
