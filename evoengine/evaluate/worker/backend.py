"""The protocol of one kind of device, as the judge uses it: sanitize, check, time.

A backend returns its findings; only the judge puts them into a report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evoengine.evaluate.worker.candidate_failures import CandidateFailure
from evoengine.protocols import BaselineTimes, CompiledCase, Job
from evoengine.records import (
    CaseCheck,
    CaseModel,
    CaseTiming,
    CheckedRun,
    GpuState,
    InputSetCheck,
    KernelActivity,
)

if TYPE_CHECKING:  # they import torch, which takes a process seconds
    from evoengine.evaluate.worker.forensics.launch_facts import Relaunch
    from evoengine.evaluate.worker.forensics.wrong_call import WrongCall

# Called when a step begins: its description, and whether candidate code may run in it.
Announce = Callable[[str, bool], None]


class NoActivity(Exception):  # noqa: N818 - a finding: the message says why there is none
    """Kernel activity cannot be measured here; no candidate is at fault."""


@dataclass(frozen=True)
class SanitizedCase:
    """What checked mode found on one case."""

    compiled: CompiledCase
    run: CheckedRun


@dataclass(frozen=True)
class TimedCase:
    """The times of one case: `timing` if they were measured, `model` if they were modelled.

    `sets` holds the comparisons of the outputs of timed launches, `wrong` those of wrong ones.
    """

    compiled: CompiledCase
    timing: CaseTiming | None = None
    model: CaseModel | None = None
    wrong: tuple[InputSetCheck, ...] = ()
    sets: tuple[InputSetCheck, ...] = ()
    is_coarse: bool = False  # timed no further than needed to see that it takes no place


class Backend(Protocol):
    """One device, as the judge uses it.

    `sanitize` and `time` return their results case by case, so that the judge has those of
    the cases before when a CandidateFailure ends the job.
    """

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions it raises outside of a launch, e.g. when a candidate's buffers leave no
        memory for the comparison.
        """
        ...

    @property
    def timing_phase(self) -> str:
        """The name under which the seconds of `time` are reported."""
        ...

    def failure(self, error: Exception) -> CandidateFailure:
        """One of `errors` as a failure of the candidate."""
        ...

    def prepare(self, compiled: CompiledCase, job: Job, announce: Announce) -> None:
        """Compute what the check of a case of `job` needs, so that no candidate is charged for that
        time; raises TaskError.
        """
        ...

    def check(self, compiled: CompiledCase, job: Job, announce: Announce) -> CaseCheck:
        """The comparison of the outputs of `job` on a prepared case; raises CandidateFailure."""
        ...

    def sanitize(self, job: Job, announce: Announce) -> Iterator[SanitizedCase] | None:
        """Prepare the code of every case; return what checked mode finds, case by case.

        None if `job` is not run in checked mode. Preparation and iteration raise
        CandidateFailure.
        """
        ...

    def time(self, job: Job, announce: Announce) -> Iterator[TimedCase]:
        """The times of a candidate that is right on every case, in the job's order; raises
        CandidateFailure.
        """
        ...

    def baselines(self, case: str) -> BaselineTimes:
        """The times of every baseline on `case`."""
        ...

    def gpu_state(self) -> GpuState | None:
        """The GPU while the last candidate was timed; None where that cannot be read."""
        ...

    def wrong_call(self) -> WrongCall | None:
        """The wrong call with the plainest inputs of the last case that was wrong, on the CPU; None
        where no output of this job was wrong.
        """
        ...

    def relaunches(
        self, compiled: CompiledCase, job: Job, call: WrongCall, announce: Announce
    ) -> tuple[Relaunch, ...]:
        """More launches on the inputs of a wrong call, as many as take little time; raises
        CandidateFailure.
        """
        ...

    def activity(self, job: Job, announce: Announce) -> tuple[KernelActivity, ...]:
        """The kernel activity of each case that has a baseline in the job; raises NoActivity and
        CandidateFailure.
        """
        ...


def shown(compiled: CompiledCase) -> str:
    """The case's name as a generator may see it: hidden cases have none."""
    return "a hidden case" if compiled.plan.hidden else compiled.plan.case
