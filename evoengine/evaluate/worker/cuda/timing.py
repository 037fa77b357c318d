"""Timing: replays of CUDA graphs, candidate and baseline in turn, in one process.

Both sides are captured the same way, read the same input sets and write a fresh output in
every call. Before a side is replayed, the buffers that it will write are overwritten, and
before the candidate also the baseline's outputs: they are the expected outputs for the same
inputs. Hot samples replay a graph of several calls back to back; cold samples replay one call
after the L2 cache was overwritten. Every time is a difference of two device events; the host's
clock decides only when to stop. The number of rounds between two looks at that clock is
random: a candidate that counts its launches cannot know which are the last, whose outputs are
compared.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from evoengine.evaluate.worker.arena import storages
from evoengine.records import Samples
from evoengine.statistics import median_interval

Call = Callable[[], object]

SAMPLE_US = 200.0  # of one hot sample: far above the 0.5 us resolution of events
MAX_CALLS = 32
WARM_UP_CALLS = 3
MIN_ROUNDS = 5
MAX_ROUNDS = 400
ROUNDS_PER_LOOK = 10  # on average, between two looks at the clock
# CUDA Runtime API, cudaEventElapsedTime: around 0.5 microseconds; no time is shorter, none is 0
EVENT_RESOLUTION_MS = 0.0005
NARROW = 0.004  # stop when the interval of the median ratio is within +-0.4 %


@dataclass(frozen=True)
class Side:
    """Candidate or baseline: `calls[i]` launches it once on its own buffers, `resets[i]` poisons
    those that it writes.

    Tensors that a call returns are overwritten without a reset.
    """

    calls: list[Call]
    resets: list[Call]

    def single(self) -> Side:
        """The side with its first call only."""
        return Side(self.calls[:1], self.resets[:1])


def estimate_us(call: Call) -> float:
    """The rough time of one call in microseconds, after WARM_UP_CALLS of them."""
    for _ in range(WARM_UP_CALLS):
        call()
    start, end = _event(), _event()
    start.record()
    for _ in range(WARM_UP_CALLS):
        call()
    end.record()
    end.synchronize()
    return _elapsed_us(start, end) / WARM_UP_CALLS


def calls_per_sample(call_us: float) -> int:
    """The number of calls of `call_us` microseconds that make a hot sample of about SAMPLE_US."""
    return max(1, min(MAX_CALLS, round(SAMPLE_US / max(call_us, 1e-3))))


class Graph:
    """Calls captured as one CUDA graph, in order; it keeps the tensors that they return.

    torch.cuda.graph() collects garbage and empties the allocator's cache on every entry, which
    takes longer than all the measuring, so capture is begun and ended by hand.
    """

    def __init__(self, calls: list[Call]) -> None:
        self._graph = torch.cuda.CUDAGraph()
        self._graph.capture_begin(capture_error_mode="thread_local")
        try:
            self._outputs = [call() for call in calls]
        finally:
            self._graph.capture_end()
        self.replay = self._graph.replay
        returned = [
            value
            for result in self._outputs
            if isinstance(result, dict)
            for value in result.values()
        ]
        self._written = storages(returned)

    def wipe(self) -> None:
        """Overwrites the tensors that its calls returned with zeros."""
        if self._written:
            torch._foreach_zero_(self._written)  # one launch for all of them


class Flusher:
    """A buffer on the device of at least twice the L2 cache; writing it evicts everything else."""

    def __init__(self, device: torch.device) -> None:
        l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        self._buffer = torch.empty(
            max(2 * l2_bytes, 32 * 1024**2), dtype=torch.uint8, device=device
        )

    def flush(self) -> None:
        """Overwrites the L2 cache, in stream order."""
        self._buffer.zero_()


def measure(
    candidate: Side, baseline: Side, budget_s: float, flusher: Flusher | None = None
) -> Samples:
    """Paired samples of both sides in turn, in microseconds a call; with a `flusher` cold ones, of
    one call each.

    Sampling ends when the median ratio is known to +-0.4 %, or when `budget_s` is spent and at
    least MIN_ROUNDS pairs were taken.
    """
    if flusher:
        candidate, baseline = candidate.single(), baseline.single()
    graphs = [Graph(candidate.calls), Graph(baseline.calls)]
    resets = [candidate.resets, baseline.resets]
    counts = [len(candidate.calls), len(baseline.calls)]
    for graph in graphs:
        graph.replay()
    torch.cuda.synchronize()
    taken: list[list[float]] = [[], []]
    deadline = time.monotonic() + budget_s
    while len(taken[0]) < MAX_ROUNDS:
        rounds = MIN_ROUNDS + secrets.randbelow(ROUNDS_PER_LOOK + 1)
        for times, more in zip(
            taken, _rounds(graphs, resets, counts, rounds, flusher), strict=True
        ):
            times += more
        if time.monotonic() > deadline or _is_narrow(taken):
            break
    for graph in graphs:
        graph.wipe()
    return Samples(
        candidate_calls=counts[0],
        baseline_calls=counts[1],
        candidate_us=tuple(taken[0]),
        baseline_us=tuple(taken[1]),
    )


def _rounds(
    graphs: list[Graph],
    resets: list[list[Call]],
    counts: list[int],
    rounds: int,
    flusher: Flusher | None,
) -> list[list[float]]:
    """`rounds` samples of each side, in microseconds a call; one synchronisation at the end."""
    marks: list[list[tuple[torch.cuda.Event, torch.cuda.Event]]] = [[], []]
    for _ in range(rounds):
        for graph, poison, events in zip(graphs, resets, marks, strict=True):
            for other in graphs:
                other.wipe()
            for reset in poison:
                reset()
            if flusher:
                flusher.flush()
            start, end = _event(), _event()
            start.record()
            graph.replay()
            end.record()
            events.append((start, end))
    torch.cuda.synchronize()
    return [
        [_elapsed_us(*pair) / count for pair in events]
        for events, count in zip(marks, counts, strict=True)
    ]


def _elapsed_us(start: torch.cuda.Event, end: torch.cuda.Event) -> float:
    return max(float(start.elapsed_time(end)), EVENT_RESOLUTION_MS) * 1000


def _is_narrow(taken: list[list[float]]) -> bool:
    if len(taken[0]) < 3 * ROUNDS_PER_LOOK:
        return False
    interval = median_interval([a / b for a, b in zip(*taken, strict=True)])
    return interval.high - interval.low <= 2 * NARROW * interval.value


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)
