"""Replays of one baseline on one case, set up as a candidate's: the same kind of slots, the same
sets in the same number of calls, the same state of L2, the same marks.

It runs in the grader: no candidate can reach its outputs. For each replay that is timed its buffers
lie elsewhere and its graph is captured anew, as those of a candidate.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from evoengine.evaluate.worker.cuda.dealing import deal_rows, slot_row
from evoengine.evaluate.worker.cuda.examination import device_bytes
from evoengine.evaluate.worker.cuda.gpu_harness import GpuHarness
from evoengine.evaluate.worker.cuda.harness.device_records import recorded_calls
from evoengine.evaluate.worker.cuda.harness.time_marks import Step, clock_gaps_us
from evoengine.evaluate.worker.cuda.harness.virtual_memory import PhysicalMemory
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.evaluate.worker.cuda.slots import Place, Slot, slot_size, somewhere
from evoengine.evaluate.worker.inputs import Tensors
from evoengine.evaluate.worker.task_functions import TaskFunctions
from evoengine.records import LaunchActivity

EAGER_CALLS = 3  # before a capture: libraries choose their kernels in the first ones


class BaselineReplays:
    """One baseline on one case, with buffers for the inputs of several calls."""

    def __init__(
        self,
        harness: GpuHarness,
        functions: TaskFunctions,
        name: str,
        case: str,
        first: PoolSet,
        most_calls: int,
    ) -> None:
        """`first` gives shapes and dtypes; raises TaskError, and CUDA errors of the function."""
        self._harness = harness
        self._functions = functions
        self._name, self._case = name, case
        self._most_calls = most_calls
        self._first = first
        self._random = random.SystemRandom()
        self._slots = {
            name: [self._make_slot(name) for _ in range(most_calls)] for name in first.inputs
        }
        # of each slot, by the address where it begins
        self._bytes = {
            slot.address: device_bytes(slot.address, slot.size)
            for slots in self._slots.values()
            for slot in slots
        }
        self._places: list[dict[str, Place]] = []
        self._bound: list[Step] = []  # of the first places
        # of the last replay, as Examined.gaps_us and Examined.host_gap_us
        self.gaps_us: tuple[float, ...] = ()
        self.host_gap_us = 0.0
        self._place()
        self._deal([first])
        with functions.running(name, case):
            for _ in range(EAGER_CALLS):
                self._calls(1)[0](0)
        # One pool for the outputs of all captures: torch keeps the memory of each pool apart.
        self._pool = torch.cuda.graph_pool_handle()
        self._graphs: dict[tuple[int, bool], CapturedGraph] = {}
        self._prepared: tuple[int, bool] | None = None  # what no replay has used yet
        # keeps the pool when the graphs of a capture are dropped
        self._anchor = CapturedGraph(self._calls(1), harness.stream.ptr, self._pool)

    @property
    def most_calls(self) -> int:
        """The most calls of a replay."""
        return self._most_calls

    def prepare(self, calls: int, cold: bool) -> None:
        """Places the buffers anew and captures the graph of a replay of so many calls, if that was
        not done since the last replay. The device does nothing for it.
        """
        if self._prepared == (calls, cold):
            return
        self._graphs.clear()
        self._place()
        with self._functions.running(self._name, self._case):
            self._graph(calls, cold)
        self._prepared = (calls, cold)

    def replay(self, sets: Sequence[PoolSet], cold: bool) -> tuple[float, ...]:
        """Times in microseconds, as Examined.times_us."""
        harness = self._harness
        self._prepared = None
        self._deal(sets)
        with self._functions.running(self._name, self._case):
            graph = self._graph(len(sets), cold)
            # untimed: the first launch of a graph is slower, and a candidate's was uploaded and has
            # run its code once
            graph.replay()
            harness.l2.prepare(self._spans(len(sets)), cold)
            torch.cuda.current_stream().synchronize()
            began = time.perf_counter()
            graph.replay()
            torch.cuda.current_stream().synchronize()
            host_us = (time.perf_counter() - began) * 1e6
        times = harness.marks.times(len(sets) if cold else 1)
        self.host_gap_us = 0.0 if cold else host_us - sum(times.event_us)
        self.gaps_us = clock_gaps_us(times.event_us, times.stamp_us)
        return times.event_us

    def profile(self, sets: Sequence[PoolSet]) -> tuple[tuple[LaunchActivity, ...], ...]:
        """What a call on each of `sets` runs on the device, launched as a candidate's under CUPTI;
        raises NoActivity, and TaskError where the function does.
        """
        self._deal(sets)
        return recorded_calls(
            [partial(call, 0) for call in self._calls(len(sets))],
            partial(self._harness.l2.prepare, self._spans(len(sets)), False),
            self._harness.kernels.nothing,
        )

    def _spans(self, calls: int) -> list[tuple[int, int]]:
        """Address and bytes of every input of the first `calls` calls."""
        return [
            (place.address, place.size) for call in self._places[:calls] for place in call.values()
        ]

    def _graph(self, calls: int, cold: bool) -> CapturedGraph:
        if (calls, cold) not in self._graphs:
            flush = self._harness.l2.flush if cold else None
            steps = self._harness.marks.timed(self._calls(calls), flush)
            self._graphs[calls, cold] = CapturedGraph(steps, self._harness.stream.ptr, self._pool)
        return self._graphs[calls, cold]

    def _make_slot(self, name: str) -> Slot:
        memory = PhysicalMemory.create(self._harness.ordinal, slot_size(self._bytes_of(name)))
        return Slot(0, memory.size, self._harness.addresses.map(memory), memory)

    def _bytes_of(self, name: str) -> int:
        value = self._first.inputs[name]
        return value.numel() * value.element_size()

    def _place(self) -> None:
        """Gives every buffer of every call a slot, and a place in it, at random."""
        self._bound.clear()
        for slots in self._slots.values():
            self._random.shuffle(slots)
        self._places = [
            {
                name: somewhere(slots[number], self._bytes_of(name), self._random)
                for name, slots in self._slots.items()
            }
            for number in range(self._most_calls)
        ]

    def _calls(self, count: int) -> list[Step]:
        """The first `count` calls, which are bound to their buffers when they are first needed."""
        for places in self._places[len(self._bound) : count]:
            tensors = Tensors()
            for name, place in places.items():
                value = self._first.inputs[name]
                held = self._bytes[place.slot.address][place.offset : place.offset + place.size]
                tensors[name] = held.view(value.dtype).view(value.shape)
            self._bound.append(_step(self._functions.bind(self._name, tensors, self._case)))
        return self._bound[:count]

    def _deal(self, sets: Sequence[PoolSet]) -> None:
        assert len(sets) <= len(self._places)
        rows = [
            slot_row(place, given.inputs[name])
            for given, places in zip(sets, self._places, strict=False)
            for name, place in places.items()
        ]
        deal_rows(self._harness, rows)

    def close(self) -> None:
        """Gives its buffers back."""
        self._graphs.clear()
        self._bound.clear()
        self._places.clear()
        self._bytes.clear()
        self._anchor.drop()
        torch.cuda.current_stream().synchronize()
        for slot in (slot for slots in self._slots.values() for slot in slots):
            self._harness.addresses.unmap(slot.address)
            slot.memory.release()
        self._slots.clear()


def _step(call: Callable[[], object]) -> Step:
    return lambda _stream: call()


class CapturedGraph:
    """Steps captured as one CUDA graph, in order; it keeps the tensors that they return.

    torch.cuda.graph() collects garbage and empties the allocator's cache on every entry, which
    takes longer than all the measuring, so capture is begun and ended by hand.
    """

    def __init__(self, steps: Sequence[Step], stream: int, pool: Any) -> None:
        """`pool` is torch's handle, for the memory of what the steps return."""
        self._graph = torch.cuda.CUDAGraph()
        self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            self._results = [step(stream) for step in steps]
        finally:
            self._graph.capture_end()

    def replay(self) -> None:
        """Launches it on the current stream."""
        self._graph.replay()

    def drop(self) -> None:
        """Gives graph and results back."""
        self._results.clear()
        self._graph.reset()
