"""The report on a wrong candidate with its diagnosis, which is a job of its own on a GPU.

It takes seconds, in which the grader of first verdicts would keep the next candidate waiting.
"""

from __future__ import annotations

from evoengine.errors import EvoError
from evoengine.evaluate.hidden_case import report_without_sizes
from evoengine.protocols import Device, Job, Progress, Purpose, Report
from evoengine.records import CaseCheck, Forensics, Status

PHASE = "forensics"  # all that the job of the diagnosis takes, its own check included
# each grader has inputs of its own
NOT_SEEN = (
    "no output was wrong when the case was checked once more: it is wrong on few inputs, or differs"
    " from run to run"
)


async def diagnosed(report: Report, job: Job, device: Device, progress: Progress) -> Report:
    """`report` on a quick verdict, with what was found out about a wrong output.

    Whatever happens to the diagnosis, the rest of the report stays as it is. One that has its
    findings already, as those on outputs of timed launches have, is returned as it is.
    """
    wrong = _undiagnosed(report, job)
    if wrong is None:
        return report
    progress("looking for what is wrong")
    phases_s = dict(report.phases_s)
    try:
        found = await device.run(diagnosing(job, report, wrong), progress)
    except EvoError as error:
        progress(f"note: the diagnosis was given up: {error}")
        forensics: Forensics | None = _nothing(wrong, str(error))
    else:
        forensics = _forensics(found, wrong)
        phases_s[PHASE] = sum(found.phases_s.values())
    return report_without_sizes(
        report.model_copy(update={"forensics": forensics, "phases_s": phases_s})
    )


def diagnosing(job: Job, report: Report, wrong: CaseCheck) -> Job:
    """The job that finds out what is wrong in the case of `wrong`, which ended `job`."""
    return job.model_copy(
        update={
            "purpose": Purpose.diagnosis,
            "cases": tuple(item for item in job.cases if item.plan.case == wrong.case),
            "passed": tuple(check.case for check in report.checks if check.ok),
            "checked": False,
        }
    )


def _undiagnosed(report: Report, job: Job) -> CaseCheck | None:
    """The check that ended `job`, where its output is wrong and nobody was asked why."""
    is_asked = job.purpose is Purpose.quick_verdict and report.forensics is None
    if not is_asked or report.status is not Status.wrong_result:
        return None
    return next((check for check in report.checks if not check.ok), None)


def _forensics(found: Report, wrong: CaseCheck) -> Forensics | None:
    if found.status is Status.wrong_result:
        return found.forensics
    if found.status is Status.correct:
        return _nothing(wrong, NOT_SEEN)
    return _nothing(wrong, f"{found.status.value}: {found.reason}")


def _nothing(wrong: CaseCheck, why: str) -> Forensics:
    lines = why.strip().splitlines() or [""]
    problem = f"not diagnosed: {lines[0][:200]}"
    return Forensics(case=wrong.case, distribution="", output="", problem=problem)
