"""Replays a candidate's plan as CUDA graphs, with nothing left of what ran before.

Before each of a replay's two graphs, the candidate's variables have their first values, and shared
memory, registers and local memory are overwritten. The first graph brings code into the caches of
the multiprocessors; until it has ended, the inputs of the second one are masked, so that nothing
can be computed in advance. The second one is timed, twice: by CUDA events, and by the device's
clock, which our own kernels write to an address that a candidate does not know.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from functools import partial

import cupy
import numpy
import torch
from cupy.cuda import runtime

from evoengine.evaluate.worker.arena import POISON
from evoengine.evaluate.worker.backend import NoActivity
from evoengine.evaluate.worker.cuda.harness.device_records import recorded_calls
from evoengine.evaluate.worker.cuda.harness.device_table import SecretTable
from evoengine.evaluate.worker.cuda.harness.harness_kernels import HarnessKernels
from evoengine.evaluate.worker.cuda.harness.l2_state import L2State
from evoengine.evaluate.worker.cuda.harness.runner_messages import (
    Load,
    PlacedCall,
    Profile,
    Profiled,
    Replay,
    Replayed,
)
from evoengine.evaluate.worker.cuda.harness.time_marks import Step, TimeMarks
from evoengine.evaluate.worker.cuda.harness.virtual_memory import (
    PAGE_BYTES,
    AddressRange,
    PhysicalMemory,
)
from evoengine.evaluate.worker.cuda.runner.candidate_module import CandidateModule
from evoengine.evaluate.worker.cuda.runner.cuda_errors import CUDA_ERRORS


class Replayer:
    """Slots and code of one candidate at a time on the current device."""

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._kernels = HarnessKernels(self._stream)
        self._range = AddressRange(ordinal)
        self._slots: dict[int, tuple[int, PhysicalMemory]] = {}  # number -> address, memory
        self._l2 = L2State(self._kernels, self._range, self._stream.ptr)
        # at a random address, where no candidate finds it
        self._marks = TimeMarks(self._kernels, self._range.allocate(PAGE_BYTES))
        self._masked = SecretTable(self._range, self._stream.ptr)
        self._module: CandidateModule | None = None
        self._spent: list[int] = []  # graphs that have run; they are destroyed before the code is
        self._buffers: dict[str, int] = {}
        self._written: frozenset[str] = frozenset()
        # the largest frame of any candidate: what one left there, no later one may find
        self._local_bytes = 0

    def warm_up(self) -> None:
        """Does once what takes long the first time: the import of memory, our own kernels."""
        memory = PhysicalMemory.create(self._ordinal, PAGE_BYTES)
        descriptor = memory.export()
        imported = PhysicalMemory.imported(descriptor, PAGE_BYTES)
        os.close(descriptor)
        address = self._range.map(imported)
        self._l2.prepare([(address, PAGE_BYTES)], cold=False)
        self._kernels.scrub(0)
        self._stream.synchronize()
        self._range.unmap(address)
        imported.release()
        memory.release()

    def map(self, numbers: Sequence[int], sizes: Sequence[int], descriptors: list[int]) -> None:
        """Maps imported slots at random addresses."""
        for number, size, descriptor in zip(numbers, sizes, descriptors, strict=True):
            memory = PhysicalMemory.imported(descriptor, size)
            self._slots[number] = self._range.map(memory), memory

    def drop(self, numbers: Sequence[int]) -> None:
        """Unmaps slots."""
        runtime.deviceSynchronize()
        for number in numbers:
            address, memory = self._slots.pop(number)
            self._range.unmap(address)
            memory.release()

    def load(self, load: Load) -> None:
        """Loads a case."""
        self._buffers, self._written = load.buffers, load.written
        self._module = CandidateModule(load)
        self.reload()

    def reload(self) -> None:
        """Loads the case's code anew, as every replay needs it."""
        assert self._module is not None
        self._destroy_spent()
        self._module.reload()

    def _destroy_spent(self) -> None:
        while self._spent:
            runtime.graphExecDestroy(self._spent.pop())

    def unload(self) -> int:
        """Unloads the case; the device memory that is free then, in bytes."""
        self._destroy_spent()
        if self._module is not None:
            self._module.unload()
            self._module = None
        runtime.deviceSynchronize()
        return int(runtime.memGetInfo()[0])

    def replay(self, replay: Replay) -> Replayed:
        """Both graphs of one replay, of code that has not run since it was loaded; the outputs lie
        in the slots afterwards.
        """
        assert self._module is not None
        module = self._module
        self._scrub()
        warm_up = _instantiated(
            self._captured([module.bind(self._pointers(call)) for call in replay.warm_up])
        )
        runtime.graphLaunch(warm_up, self._stream.ptr)
        # The host captures while the warm-up runs; the device has nothing of it before that ended.
        calls: list[Step] = [module.bind(self._pointers(call)) for call in replay.calls]
        captured = self._captured(self._marks.timed(calls, self._l2.flush if replay.cold else None))
        self._stream.synchronize()
        self._spent.append(warm_up)
        module.reset_variables(self._stream.ptr)
        self._poison(replay.calls)
        self._unmask(replay)
        self._scrub()
        graph = _instantiated(captured)
        runtime.graphUpload(graph, self._stream.ptr)
        reads = [(self._slots[slot][0] + offset, size) for slot, offset, size, _ in replay.reads]
        self._l2.prepare(reads, replay.cold)
        self._stream.synchronize()
        began = time.perf_counter()
        runtime.graphLaunch(graph, self._stream.ptr)
        self._stream.synchronize()
        host_us = (time.perf_counter() - began) * 1e6
        self._spent.append(graph)
        times = self._marks.times(len(calls) if replay.cold else 1)
        return Replayed(event_us=times.event_us, stamp_us=times.stamp_us, host_us=host_us)

    def profile(self, request: Profile) -> Profiled:
        """What the calls run on the device, of code that has not run since it was loaded.

        They are launched one by one, not as a graph: what lies between two kernels is not counted,
        and graphs and CUPTI have ended processes in several versions of CUDA.
        """
        assert self._module is not None
        module, stream = self._module, self._stream.ptr
        torch.cuda.set_device(self._ordinal)  # the profiler waits for torch's current device
        for call in request.warm_up:
            module.bind(self._pointers(call))(stream)
        self._stream.synchronize()
        module.reset_variables(stream)
        calls = [partial(module.bind(self._pointers(call)), stream) for call in request.calls]
        reads = [(self._slots[slot][0] + offset, size) for slot, offset, size in request.reads]
        try:
            recorded = recorded_calls(
                calls, partial(self._l2.prepare, reads, False), self._kernels.nothing
            )
        except NoActivity as problem:
            return Profiled(problem=str(problem))
        return Profiled(calls=recorded)

    def _captured(self, steps: Sequence[Step]) -> int:
        """The steps as one graph, in order; its handle."""
        stream = self._stream.ptr
        runtime.streamBeginCapture(stream, runtime.streamCaptureModeThreadLocal)
        try:
            for step in steps:
                step(stream)
        except CUDA_ERRORS:
            # what is wrong with the launch is the reason, not that the capture cannot end
            with contextlib.suppress(*CUDA_ERRORS):
                runtime.graphDestroy(runtime.streamEndCapture(stream))
            raise
        return int(runtime.streamEndCapture(stream))

    def _scrub(self) -> None:
        assert self._module is not None
        self._local_bytes = max(self._local_bytes, self._module.local_bytes)
        self._kernels.scrub(self._local_bytes)

    def _poison(self, calls: Sequence[PlacedCall]) -> None:
        """Overwrites what the timed calls will write: the warm-up may have written there."""
        for call in calls:
            pointers = self._pointers(call)
            for name in self._written:
                runtime.memsetAsync(pointers[name], POISON, self._buffers[name], self._stream.ptr)

    def _unmask(self, replay: Replay) -> None:
        """Lets the timed calls read their inputs, which the warm-up could not."""
        rows = [
            (self._slots[slot][0] + offset, size, key) for slot, offset, size, key in replay.reads
        ]
        if not rows:
            return
        # no address of a later call stays for the candidate to find
        with self._masked.holding(numpy.array(rows, dtype=numpy.uint64)) as table:
            self._kernels.unmask(table, len(rows))

    def _pointers(self, call: PlacedCall) -> dict[str, int]:
        return {
            name: self._slots[slot][0] + offset
            for name, (slot, offset) in zip(self._buffers, call, strict=True)
        }


def _instantiated(graph: int) -> int:
    """The executable handle of a captured graph, which is gone afterwards."""
    try:
        return int(runtime.graphInstantiate(graph))
    finally:
        runtime.graphDestroy(graph)
