"""A fault of checked mode in a hidden case, found once more on a small case that may be shown.

Of a hidden case no line and no index may be told. The small cases (task/small_cases.py) are ours,
always the same, and no size of them follows from a hidden one: a fault there may be told.
"""

from __future__ import annotations

from evoengine.errors import EvoError
from evoengine.evaluate.diagnosed_report import CompileSmall
from evoengine.evaluate.told_fault import findings_of
from evoengine.protocols import Device, Job, Progress, Purpose, Report
from evoengine.records import Status
from evoengine.task.schema import Task
from evoengine.task.small_cases import smaller_versions


async def told_in_the_open(
    report: Report,
    job: Job,
    task: Task,
    device: Device,
    compile_small: CompileSmall,
    progress: Progress,
) -> Report:
    """`report` of an emulator on `job`; of a fault in a hidden case with the one of a small case as
    finding, where there is one. Its status and reason stay as they are.
    """
    failed = next((check for check in report.checks if not check.ok), None)
    if report.status is not Status.fault or failed is None or not failed.hidden:
        return report
    small = await compile_small(smaller_versions(task, failed.case))
    if not small:
        return report
    progress("following every access on small cases")
    update = {
        "purpose": Purpose.checked_mode,
        "cases": small,
        "upcoming": (),
        "smaller_first": False,
    }
    try:
        found = await device.run(job.model_copy(update=update), progress)
    except EvoError as error:
        progress(f"note: small cases were not followed: {error}")
        return report
    if found.status is not Status.fault:
        return report
    return report.model_copy(update={"forensics": findings_of(found)})
