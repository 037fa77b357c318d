"""The report on a wrong candidate with its diagnosis, which is a job of its own.

On a GPU it always is: it takes seconds, in which the grader of first verdicts would keep the next
candidate waiting. On an emulator it is where the case has a smaller version.

The mistake is looked for on a small version of the case first (task/small_cases.py): causes are
found there that cannot be told from one another in millions of elements, and of a hidden case
nothing may be told at all. Where that shows no cause, smaller ones are looked at; where the
candidate is right on all of them, its own case.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence

from evoengine.errors import EvoError
from evoengine.evaluate.hidden_case import forensics_without_sizes
from evoengine.evaluate.worker.forensics.lead import WHOLE
from evoengine.protocols import CompiledCase, Device, Job, Progress, Purpose, Report
from evoengine.records import CaseCheck, DiagnosisKind, Forensics, Status
from evoengine.task.schema import Task
from evoengine.task.small_cases import smaller_versions, tiny_versions

PHASE = "forensics"  # all that the jobs of the diagnosis take, their own checks included
# each grader has inputs of its own
NOT_SEEN = (
    "no output was wrong when the case was checked once more: it is wrong on few inputs, or differs"
    " from run to run"
)
MORE_S = 6.0  # after which no further small case is begun
# Findings that say what is seen, and not what made it so.
_SEEN = frozenset(
    {
        DiagnosisKind.region,
        DiagnosisKind.period,
        DiagnosisKind.sizes,
        DiagnosisKind.inputs,
        DiagnosisKind.constant,
        DiagnosisKind.not_finite,
        DiagnosisKind.unknown,
    }
)
# the small cases with these names, those that the candidate can be built for
CompileSmall = Callable[[Sequence[str]], Awaitable[tuple[CompiledCase, ...]]]


async def diagnosed(
    report: Report,
    job: Job,
    task: Task,
    device: Device,
    compile_small: CompileSmall,
    progress: Progress,
) -> Report:
    """`report` on a quick verdict, with what was found out about a wrong output.

    Whatever happens to the diagnosis, the rest of the report stays as it is. One that has its
    findings already, as those on outputs of timed launches have, is returned as it is.
    """
    wrong = _undiagnosed(report, job)
    if wrong is None:
        return report
    progress("looking for what is wrong")
    diagnosis = _Diagnosis(report, job, wrong, device, progress)
    forensics = await diagnosis.on_small_ones(task, compile_small)
    if forensics is None:
        forensics = await diagnosis.on_its_own_case()
        if wrong.hidden:
            forensics = forensics and forensics_without_sizes(forensics)
    phases_s = {**report.phases_s, **diagnosis.phases_s}
    return report.model_copy(update={"forensics": forensics, "phases_s": phases_s})


class _Diagnosis:
    """The jobs of one diagnosis."""

    def __init__(
        self, report: Report, job: Job, wrong: CaseCheck, device: Device, progress: Progress
    ) -> None:
        self._job = job
        self._wrong = wrong
        self._device = device
        self._progress = progress
        self._passed = tuple(check.case for check in report.checks if check.ok)
        self.phases_s: dict[str, float] = {}

    async def on_small_ones(self, task: Task, compile_small: CompileSmall) -> Forensics | None:
        """What was found out on the first small case that shows a cause, else on the first on which
        an output is wrong; None where none is.
        """
        began = time.monotonic()
        names = smaller_versions(task, self._wrong.case)
        if not names:
            return None
        first = await compile_small(names)
        found = await self._on_small(first) if first else None
        if found and _has_cause(found):
            return found
        for tiny in await compile_small(tiny_versions(task, self._wrong.case)):
            if time.monotonic() - began > MORE_S:
                break
            other = await self._on_small((tiny,))
            if other and _has_cause(other):
                return other
            found = found or other
        return found

    async def _on_small(self, cases: tuple[CompiledCase, ...]) -> Forensics | None:
        """What was found out on the first of the small cases on which an output is wrong; None
        where none is, or nothing was found out.
        """
        try:
            found = await self._run(cases)
        except EvoError:
            return None
        self._passed += tuple(check.case for check in found.checks if check.ok)
        forensics = found.forensics if found.status is Status.wrong_result else None
        return forensics if forensics is not None and forensics.diagnoses else None

    async def on_its_own_case(self) -> Forensics | None:
        """What was found out on the case that ended the verdict."""
        cases = tuple(item for item in self._job.cases if item.plan.case == self._wrong.case)
        try:
            found = await self._run(cases)
        except EvoError as error:
            self._progress(f"note: the diagnosis was given up: {error}")
            return self._nothing(str(error))
        if found.status is Status.wrong_result:
            return found.forensics
        if found.status is Status.correct:
            return self._nothing(NOT_SEEN)
        return self._nothing(f"{found.status.value}: {found.reason}")

    async def _run(self, cases: tuple[CompiledCase, ...]) -> Report:
        update = {
            "purpose": Purpose.diagnosis,
            "cases": cases,
            "passed": self._passed,
            "checked": False,
            "smaller_first": False,
        }
        found = await self._device.run(self._job.model_copy(update=update), self._progress)
        seconds = sum(found.phases_s.values())
        self.phases_s[PHASE] = self.phases_s.get(PHASE, 0.0) + seconds
        return found

    def _nothing(self, why: str) -> Forensics:
        lines = why.strip().splitlines() or [""]
        problem = f"not diagnosed: {lines[0][:200]}"
        return Forensics(case=self._wrong.case, problem=problem)


def _has_cause(found: Forensics) -> bool:
    """Whether one of the findings explains all that is wrong."""
    return any(item.kind not in _SEEN and item.share >= WHOLE for item in found.diagnoses)


def _undiagnosed(report: Report, job: Job) -> CaseCheck | None:
    """The check that ended `job`, where its output is wrong and nobody was asked why."""
    is_left = job.purpose is Purpose.quick_verdict or job.smaller_first
    is_asked = is_left and report.forensics is None
    if not is_asked or report.status is not Status.wrong_result:
        return None
    return next((check for check in report.checks if not check.ok), None)
