"""Marks of time in a CUDA graph, each taken twice: by an event, and by the device's clock.

An event's time lies in memory of the driver, which a candidate could overwrite if it knew where.
The device's clock is written by our own kernel to an address that it does not know.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import cupy
import numpy
from cupy.cuda import runtime

from evoengine.evaluate.worker.cuda.harness.driver_library import driver_library
from evoengine.evaluate.worker.cuda.harness.harness_kernels import HarnessKernels

_EXTERNAL = 1  # CU_EVENT_RECORD_EXTERNAL: in a graph, a node that records
Step = Callable[[int], object]  # enqueues work on a stream, given by its handle


@dataclass(frozen=True)
class MarkedTimes:
    """The times of the samples of one replay, in microseconds, by events and by stamps."""

    event_us: tuple[float, ...]
    stamp_us: tuple[float, ...]


def clock_gaps_us(event_us: Iterable[float], stamp_us: Iterable[float]) -> tuple[float, ...]:
    """By how much each stamp's time, which lies outside of the event's, exceeds it."""
    return tuple(stamp - event for event, stamp in zip(event_us, stamp_us, strict=True))


class TimeMarks:
    """Pairs of marks; `address` is of memory for 8 bytes a mark."""

    def __init__(self, kernels: HarnessKernels, address: int) -> None:
        self._kernels = kernels
        self._address = address
        self._events: list[int] = []

    def around(self, number: int, steps: list[Step]) -> list[Step]:
        """`steps` between the two marks of sample `number`."""
        return [self._mark(2 * number), *steps, self._mark(2 * number + 1)]

    def timed(self, calls: Sequence[Step], flush: Step | None) -> list[Step]:
        """`calls` with marks: as one sample together, or, with `flush`, each as one after it."""
        if flush is None:
            return self.around(0, list(calls))
        return [
            step
            for number, call in enumerate(calls)
            for step in (flush, *self.around(number, [call]))
        ]

    def times(self, samples: int) -> MarkedTimes:
        """The times between the marks of the last replay; its work has ended."""
        stamps = numpy.zeros(2 * samples, dtype=numpy.uint64)
        runtime.memcpy(stamps.ctypes.data, self._address, stamps.nbytes, runtime.memcpyDeviceToHost)
        pairs = [(2 * number, 2 * number + 1) for number in range(samples)]
        return MarkedTimes(
            event_us=tuple(
                runtime.eventElapsedTime(self._events[first], self._events[last]) * 1000
                for first, last in pairs
            ),
            stamp_us=tuple(
                (int(stamps[last]) - int(stamps[first])) / 1000 for first, last in pairs
            ),
        )

    def _mark(self, number: int) -> Step:
        while len(self._events) <= number:
            self._events.append(runtime.eventCreate())
        event, address, begins = self._events[number], self._address + 8 * number, number % 2 == 0

        def mark(stream: int) -> None:
            if begins:
                self._kernels.stamp(address)
            _record(event, stream)
            if not begins:
                self._kernels.stamp(address)

        return mark


def _record(event: int, stream: int) -> None:
    code = driver_library().cuEventRecordWithFlags(
        ctypes.c_void_p(event), ctypes.c_void_p(stream), ctypes.c_uint(_EXTERNAL)
    )
    if code:
        raise cupy.cuda.driver.CUDADriverError(code)
