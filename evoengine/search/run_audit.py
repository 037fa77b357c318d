"""Audits the task of a new run, once, before the first trial."""

from __future__ import annotations

import contextlib

from evoengine.errors import TaskError
from evoengine.events import Notice
from evoengine.protocols import Executor
from evoengine.records import Environment
from evoengine.search.choose_run import RunChoice
from evoengine.search.control import Control
from evoengine.search.stored_audits import audit_path, read_audit, write_audit

NOTICE = "auditing the task, once: its gates must refuse what is plainly wrong"


async def audit_findings(
    executor: Executor, choice: RunChoice, environment: Environment, control: Control
) -> tuple[str, ...] | None:
    """What the task lets through, one line each; None if the run is stopped meanwhile.

    The executor is started. Raises TaskError where a function of the task fails.
    """
    if choice.device.is_scripted:
        return ()  # its verdicts are drawn: no gate is used
    path = audit_path(choice.task, choice.task_path, environment)
    report = read_audit(path)
    if report is None:
        control.observe(Notice(NOTICE))
        report = await control.unless_stopped(executor.audit(lambda _: None))
        if report is None:
            return None
        with contextlib.suppress(OSError):  # it is made again next time
            write_audit(path, report)
    return report.findings


def refuse_findings(choice: RunChoice, findings: tuple[str, ...]) -> None:
    """Raises TaskError where there are findings, unless the user wants to start all the same."""
    if findings and not choice.despite_audit:
        raise TaskError(
            f"task {choice.task.name} lets {len(findings)} plainly wrong outputs through, so its"
            " verdicts mean little: make its tolerances smaller, or its inputs more telling;"
            " --despite-audit starts all the same"
        )
