"""The judge's seam to a CUDA device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from evoengine.evaluate.worker.arena import Arena
from evoengine.evaluate.worker.backend import LoadedCandidate
from evoengine.evaluate.worker.candidate_failures import CandidateFailure
from evoengine.evaluate.worker.check import layout_of
from evoengine.evaluate.worker.cuda.baselines import time_baselines
from evoengine.evaluate.worker.cuda.cuda_launch import CUDA_ERRORS, CudaProgram, translate
from evoengine.evaluate.worker.cuda.paired_timing import PairedTiming
from evoengine.evaluate.worker.cuda.timing import Flusher
from evoengine.evaluate.worker.expected_outputs import ExpectedOutputs
from evoengine.evaluate.worker.inputs import InputSet, all_sets
from evoengine.evaluate.worker.judge import JobRun, explain, shown
from evoengine.protocols import BaselineTimes, CompiledCase
from evoengine.records import CaseCheck, InputSetCheck, Status
from evoengine.task.schema import Task


class CudaBackend:
    """Implements backend.Backend: cubins on the current device."""

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

    def finding(self, error: Exception) -> CandidateFailure:
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

    def sanitize(self, trial: JobRun) -> None:
        """Nothing: a GPU tells no faults but those that end the launch."""

    def time(self, trial: JobRun) -> None:
        """Paired timing of the cases that have a baseline in the job, and a check of what the timed
        launches wrote.
        """
        with trial.phase("timing"):
            for compiled in trial.job.cases:
                baseline = trial.job.baselines.get(compiled.plan.case)
                if baseline is None or trial.status is not Status.correct:
                    continue
                trial.leave(f"preparing to time {shown(compiled)}")
                race = PairedTiming(
                    self.task, self.expected_outputs, self.flusher, compiled, baseline
                )
                trial.enter("timing", compiled)
                trial.timings.append(race.run())
                wrong = [item for item in race.verify(trial.job.tier) if not item.ok]
                if wrong:
                    _refuse_timed(trial, compiled, wrong)

    def baselines(self, case: str) -> BaselineTimes:
        return time_baselines(self.task, self.expected_outputs, case, self.flusher)


def run_guarded(launch: Callable[[], None]) -> None:
    """Launches and waits; every CUDA error becomes a finding about the candidate."""
    try:
        launch()
        torch.cuda.synchronize()
    except CUDA_ERRORS as error:
        raise translate(error) from None


def _refuse_timed(trial: JobRun, compiled: CompiledCase, wrong: list[InputSetCheck]) -> None:
    check = CaseCheck(
        case=compiled.plan.case, hidden=compiled.plan.hidden, ok=False, sets=tuple(wrong)
    )
    trial.checks.append(check)
    trial.end(Status.wrong_result, f"right when checked, wrong when timed: {explain(check)}")
