"""The seam between the judge and a kind of device."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evoengine.evaluate.worker.arena import Arena
from evoengine.evaluate.worker.candidate_failures import CandidateFailure
from evoengine.evaluate.worker.inputs import InputSet
from evoengine.protocols import BaselineTimes, CompiledCase

if TYPE_CHECKING:
    from evoengine.evaluate.worker.judge import JobRun


@dataclass(frozen=True)
class LoadedCandidate:
    """A candidate's code for one case with buffers of its own: `launch` runs the whole plan and
    waits; it raises Finding.
    """

    arena: Arena
    launch: Callable[[], None]


class Backend(Protocol):
    """One device, as the judge uses it."""

    @property
    def input_sets(self) -> tuple[InputSet, ...]:
        """What every case is launched with; each distribution and each seed is among them."""
        ...

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What it raises beside a launch, e.g. when a candidate's buffers leave no memory for the
        comparison.
        """
        ...

    def finding(self, error: Exception) -> CandidateFailure:
        """What one of `errors` says about the candidate."""
        ...

    def load(self, compiled: CompiledCase) -> AbstractContextManager[LoadedCandidate]:
        """The candidate ready to be launched, its code loaded anew; raises Finding."""
        ...

    def sanitize(self, trial: JobRun) -> None:
        """What is looked for before any result is compared; raises Finding."""
        ...

    def time(self, trial: JobRun) -> None:
        """Adds the times of a candidate that is right on every case, measured or modelled; raises
        Finding.
        """
        ...

    def baselines(self, case: str) -> BaselineTimes:
        """Every baseline on `case`."""
        ...
