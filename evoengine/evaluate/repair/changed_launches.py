"""Launches changed kernels one after another, whatever one of them does."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable

from evoengine.candidate.kernel_file import Candidate
from evoengine.evaluate.device.worker_device import EMULATED_TIMES
from evoengine.evaluate.repair.change_queue import LaunchedChanges
from evoengine.evaluate.repair.cheap_case import is_wrong
from evoengine.evaluate.repair.repair_job import CompiledChanges
from evoengine.evaluate.repair.workbench import Workbench
from evoengine.evaluate.repair.wrong_inputs import WrongInputs, comparison
from evoengine.protocols import CompiledCase, Job, no_progress
from evoengine.records import CaseCheck

FIRST_CASES, MOST_CASES = 4, 24  # of a job: after so many launches the clock is read
LAUNCH_S = 1.0  # of one change on a GPU, loading included: honest ones take milliseconds
MOST_S = 4.0  # of the kernel as it is, as a GPU's: an emulator may take EMULATED_TIMES as long
JOB_S = 2.0  # that a job may take, judged by the one before
AS_WRONG = 0.02  # sums of another compilation may be rounded elsewhere
_ERRORS = ("rel_rmse", "failing_share", "nan_count")
_NUMBER = re.compile(r", change (\d+)")  # see worker/judge.py


class ChangedLaunches:
    """The launches of changes of one candidate on one device."""

    def __init__(
        self,
        candidate: Candidate,
        bench: Workbench,
        alone: dict[str, CaseCheck],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`alone` says how the candidate does, by case, without alternatives to it; all launches
        of a candidate share it.
        """
        self._candidate = candidate
        self._bench = bench
        self._alone = alone
        self._clock = clock
        self._cases = FIRST_CASES  # of the next job
        # one of each code that is launched next, which an emulator makes meanwhile
        self.upcoming: tuple[CompiledCase, ...] = ()

    async def launched(
        self, compiled: CompiledChanges, wrong: WrongInputs, until: float
    ) -> LaunchedChanges:
        """What the changes write for the wrong call, of those that are launched `until` then; none
        is launched where one of them changes the kernel before it is chosen.
        """
        left = list(zip(compiled.changes, compiled.cases, strict=True))
        found = LaunchedChanges()
        was_doubtful = False
        if self._bench.is_emulator and compiled.unchanged is not None:
            unchanged = await self._unchanged(compiled, wrong, until)
            if unchanged is None or not self._is_as_alone(unchanged, wrong):
                return LaunchedChanges(is_spoiled=True)
        while left and self._clock() < until:
            tried = left[: self._cases]
            first = () if compiled.unchanged is None else (compiled.unchanged,)
            cases = (*first, *(case for _, case in tried))
            job = self._job(compiled, cases, wrong, LAUNCH_S)
            began = self._clock()
            report = await self._bench.device.run(job, no_progress)
            self._cases = _next_count(len(job.cases), self._clock() - began)
            ended = _NUMBER.search(report.reason)
            judged = 0 if ended and not report.checks else len(report.checks) - len(first)
            if first and report.checks:
                found.unchanged = report.checks[0]
            found.checks += [
                (change, check)
                for (change, _), check in zip(tried, report.checks[len(first) :], strict=False)
            ]
            if judged >= len(tried):
                left = left[len(tried) :]
                continue
            # one of them ended its process, and with it perhaps what was known of those before
            position = int(ended[1]) - 1 - len(first) if ended and not report.checks else judged
            if not 0 <= position < len(tried):
                # the kernel as it is: once it may be what a change before left behind
                if was_doubtful:
                    return found
                was_doubtful = True
                continue
            left = [*left[judged:position], *left[position + 1 :]]
        return found

    def _job(
        self,
        compiled: CompiledChanges,
        cases: tuple[CompiledCase, ...],
        wrong: WrongInputs,
        launch_s: float,
    ) -> Job:
        digest = compiled.built.code_digest
        upcoming = self.upcoming if self._bench.is_emulator else ()
        return comparison(self._candidate, cases, wrong, digest, launch_s, upcoming)

    def _is_as_alone(self, unchanged: CaseCheck, wrong: WrongInputs) -> bool:
        """Whether the kernel among alternatives does what it does without them; a fault may be
        told of another place.
        """
        alone = None if wrong.is_fault else self._alone.get(unchanged.case)
        return is_wrong(unchanged) if alone is None else is_as_wrong(alone, unchanged)

    async def compare_with(
        self, compiled: CompiledChanges, wrong: WrongInputs, until: float
    ) -> None:
        """Takes what the kernel of a code without changes does for what it does without
        alternatives: where its loops are not unrolled, a mistake may show itself otherwise.
        """
        unchanged = await self._unchanged(compiled, wrong, until)
        if unchanged is not None:
            self._alone[unchanged.case] = unchanged

    async def _unchanged(
        self, compiled: CompiledChanges, wrong: WrongInputs, until: float
    ) -> CaseCheck | None:
        """Launches the kernel as it is once, with all the time that is left: an emulator makes the
        machine code of all changes then, and on a loaded machine that took the time of the first
        change, which was blamed and with it all that share its code. None where it does not end.
        """
        assert compiled.unchanged is not None
        left_s = max(LAUNCH_S, (until - self._clock()) / EMULATED_TIMES)
        job = self._job(compiled, (compiled.unchanged,), wrong, min(left_s, MOST_S))
        report = await self._bench.device.run(job, no_progress)
        return report.checks[0] if report.checks else None


def is_as_wrong(alone: CaseCheck, unchanged: CaseCheck) -> bool:
    """Whether a kernel among alternatives to it does as it does when it is compiled alone."""
    if not is_wrong(unchanged) or not alone.sets or not unchanged.sets:
        return is_wrong(alone) == is_wrong(unchanged)
    before, after = alone.sets[0], unchanged.sets[0]
    return all(_is_near(getattr(before, name), getattr(after, name)) for name in _ERRORS)


def _is_near(one: float, other: float) -> bool:
    are_close = math.isclose(one, other, rel_tol=AS_WRONG, abs_tol=AS_WRONG)
    return are_close or (math.isnan(one) and math.isnan(other))


def _next_count(launches: int, seconds: float) -> int:
    """The changes of the next job, so that it takes about JOB_S."""
    fitting = int(JOB_S * launches / seconds) if seconds > 0 else MOST_CASES
    return max(1, min(fitting, MOST_CASES))
