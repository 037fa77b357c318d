"""The judge's backend for a CUDA device: loads cubins, times CUDA graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from evoengine.evaluate.worker.arena import Arena
from evoengine.evaluate.worker.backend import Announce, LoadedCandidate, TimedCase, shown
from evoengine.evaluate.worker.candidate_failures import CandidateFailure
from evoengine.evaluate.worker.check import layout_of
from evoengine.evaluate.worker.cuda.baselines import time_baselines
from evoengine.evaluate.worker.cuda.cuda_launch import CUDA_ERRORS, CudaProgram, translate
from evoengine.evaluate.worker.cuda.paired_timing import PairedTiming
from evoengine.evaluate.worker.cuda.timing import Flusher
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.inputs import InputSet, all_sets
from evoengine.protocols import BaselineTimes, CompiledCase, Job
from evoengine.task.schema import Task


class CudaBackend:
    """Implements backend.Backend: cubins on the current device."""

    timing_phase = "timing"

    def __init__(self, task: Task, expected_outputs: ExpectedOutputs) -> None:
        self.task = task
        self.expected_outputs = expected_outputs
        self.flusher = Flusher(expected_outputs.device)

    @property
    def input_sets(self) -> tuple[InputSet, ...]:
        return all_sets(self.task)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return CUDA_ERRORS

    def failure(self, error: Exception) -> CandidateFailure:
        return translate(error)

    @contextmanager
    def load(self, compiled: CompiledCase) -> Iterator[LoadedCandidate]:
        try:
            arena = Arena(layout_of(self.task, compiled.plan), self.expected_outputs.device)
            pointers = {name: arena.pointer(name) for name in arena.tensors}
            launch = CudaProgram(compiled).prepare(pointers, torch.cuda.current_stream())
        except CUDA_ERRORS as error:
            raise translate(error) from None
        yield LoadedCandidate(arena, lambda: run_guarded(launch))

    def sanitize(self, job: Job, announce: Announce) -> None:
        """None: a GPU reports only faults that end the launch."""

    def time(self, job: Job, announce: Announce) -> Iterator[TimedCase]:
        """Time each case that has a baseline in the job, paired with it, and check the outputs of
        the timed launches.
        """
        for compiled in job.cases:
            baseline = job.baselines.get(compiled.plan.case)
            if baseline is None:
                continue
            announce(f"preparing to time {shown(compiled)}", False)
            pair = PairedTiming(self.task, self.expected_outputs, self.flusher, compiled, baseline)
            announce(f"timing {shown(compiled)}", True)
            timing = pair.run()
            wrong = tuple(item for item in pair.check_outputs(job.tier) if not item.ok)
            yield TimedCase(compiled, timing=timing, wrong=wrong)

    def baselines(self, case: str) -> BaselineTimes:
        return time_baselines(self.task, self.expected_outputs, case, self.flusher)


def run_guarded(launch: Callable[[], None]) -> None:
    """Launches and waits; raises every CUDA error as a failure of the candidate."""
    try:
        launch()
        torch.cuda.synchronize()
    except CUDA_ERRORS as error:
        raise translate(error) from None
