"""Audits the task of a new run, once, before the first trial."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from evoengine.errors import TaskError
from evoengine.events import Notice
from evoengine.protocols import Executor
from evoengine.records import AuditReport, Environment
from evoengine.search.control import Control
from evoengine.search.stored_audits import audit_path, read_audit, write_audit
from evoengine.task.schema import Task

SHOWN_FINDINGS = 5
NOTICE = "auditing the task, once: its gates must refuse what is plainly wrong"


async def audit_findings(
    executor: Executor,
    task: Task,
    task_path: Path,
    environment: Environment,
    control: Control,
) -> tuple[str, ...] | None:
    """What the task lets through, one line each; None if the run is stopped meanwhile.

    The executor is started. Raises TaskError where a function of the task fails.
    """
    path = audit_path(task, task_path, environment)
    report = read_audit(path)
    if report is None:
        control.observe(Notice(NOTICE))
        report = await _audit(executor, control)
        if report is None:
            return None
        with contextlib.suppress(OSError):  # it is made again next time
            write_audit(path, report)
    return report.findings


def refuse_findings(task: Task, findings: tuple[str, ...]) -> None:
    """Raises TaskError with the first findings, if there are any."""
    if not findings:
        return
    more = len(findings) - SHOWN_FINDINGS
    lines = [*findings[:SHOWN_FINDINGS], *([f"and {more} more"] if more > 0 else [])]
    raise TaskError(
        f"task {task.name} lets {len(findings)} plainly wrong outputs through, so its verdicts mean"
        " little: make its tolerances smaller, or its inputs more telling; `evoengine audit` shows"
        " all, --despite-audit starts all the same\n" + "\n".join(f"  {line}" for line in lines)
    )


async def _audit(executor: Executor, control: Control) -> AuditReport | None:
    auditing = asyncio.create_task(executor.audit(lambda _: None))
    stopping = asyncio.create_task(control.stop.wait())
    await asyncio.wait({auditing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not auditing.done():
        auditing.cancel()
        await asyncio.wait({auditing})
        return None
    return auditing.result()
