"""Judges a race: runs it, and says which side is at fault where it ends early."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Protocol

from evoengine.errors import TaskError
from evoengine.evaluate.worker.candidate_failures import CandidateFailure
from evoengine.protocols import RaceReport
from evoengine.records import RaceTiming, Status


class SideFailed(Exception):  # noqa: N818 - a finding about a candidate
    """One side of a race failed."""

    def __init__(self, side: str, failure: CandidateFailure) -> None:
        super().__init__(str(failure))
        self.side = side
        self.failure = failure


class RunningRace(Protocol):
    """A race that has not been run yet."""

    def run(self) -> Iterable[RaceTiming]:
        """Runs it; raises SideFailed."""
        ...


class RacingBackend(Protocol):
    """What a race needs of a backend."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """As Backend.errors."""
        ...


def judge_race(race: RunningRace, backend: RacingBackend) -> RaceReport:
    """The report on `race`."""
    began = time.monotonic()
    try:
        timings = tuple(race.run())
    except SideFailed as failed:
        status = failed.failure.status
        # each was launched alone before: what is missing is the memory that a race takes
        side = failed.side if status is not Status.launch_error else ""
        return RaceReport(status=status, reason=str(failed), at_fault=side)
    except backend.errors as error:
        return _without_memory(error)
    except TaskError as error:
        if not isinstance(error.__cause__, backend.errors):
            raise
        return _without_memory(error.__cause__)  # the baseline found none
    phases_s = {"race": time.monotonic() - began}
    return RaceReport(status=Status.correct, timings=timings, phases_s=phases_s)


def _without_memory(error: Exception) -> RaceReport:
    """Both sides and the baseline together need more memory than there is: nobody's fault."""
    return RaceReport(status=Status.launch_error, reason=f"no memory for a race: {error}")
