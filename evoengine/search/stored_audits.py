"""Audits of tasks, kept in the cache folder: a task is audited once on a kind of device."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from evoengine import atomic_files
from evoengine.digest import digest, digest_json
from evoengine.paths import cache_dir
from evoengine.records import AuditReport, Environment
from evoengine.search.references import reference_digests
from evoengine.task.schema import Task

AUDIT_VERSION = 2  # counts changes of what is tried
FOLDER = "audits"
# of a task: what an audit depends on
_PARTS = {
    *("reference", "dims", "inputs", "outputs", "distributions", "cases", "hidden_cases"),
    *("tiers", "objective"),
}


def audit_path(task: Task, task_path: Path, environment: Environment) -> Path:
    """The file of an audit, named after all that it depends on."""
    name = digest(
        str(AUDIT_VERSION),
        digest_json(task.model_dump(mode="json", include=_PARTS)),
        digest_json(reference_digests(task, task_path)),
        environment.kind,
        environment.versions.get("torch", ""),
        environment.versions.get("evoengine", ""),
    )
    return cache_dir() / FOLDER / f"{name}.json"


def read_audit(path: Path) -> AuditReport | None:
    """The stored report; None if there is none that can be read."""
    try:
        return AuditReport.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def write_audit(path: Path, report: AuditReport) -> None:
    """Stores a report; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.write_text(path, report.model_dump_json())
