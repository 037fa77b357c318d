"""The files of one elite: all the evidence for its verdict."""

from __future__ import annotations

from typing import Any

from evoengine.candidate import binding, kernel_file
from evoengine.candidate.arch import limits_of
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import StoreError
from evoengine.records import Elite, Verdict
from evoengine.report import as_json
from evoengine.report.lineage import lineage
from evoengine.report.rows_from_store import on_device, resource_rows, verdict_row
from evoengine.report.stored_trials import StoredTrials
from evoengine.task.schema import Task


def elite_texts(elite: Elite, task: Task, stored: StoredTrials) -> dict[str, str]:
    """Name to text of every file in the elite's folder."""
    number = elite.outcome.trial
    proposal, verdict = stored.proposal_of(number), stored.verdict_of(number)
    if proposal is None or proposal.source is None or verdict is None:
        raise StoreError(
            f"trial {number} holds place {elite.place} of {elite.tier} but its kernel or its"
            " verdict is not stored"
        )
    parsed = kernel_file.parse(proposal.source, f"trial {number}").tuned(proposal.tunables)
    row = verdict_row(
        verdict, elite.outcome.label or parsed.plan.name, parsed.tunables, task.target
    )
    head = {"trial": number, "tier": elite.tier, "place": elite.place}
    documents: dict[str, Any] = {
        "plan.json": {**head, "tunables": parsed.tunables, "cases": _bound(parsed, task, verdict)},
        "verdict.json": {**head, **row.model_dump(mode="json"), "checks": verdict.checks},
        "samples.json": {**head, "timings": verdict.timings},
        "resources.json": {**head, **_resources(task, verdict)},
        "environment.json": {**head, "environment": verdict.environment},
        "lineage.json": {**head, "lineage": lineage(number, stored.proposal_of, stored.verdict_of)},
    }
    return {
        "kernel.cu": parsed.with_defaults(),
        **{name: as_json.dumps(document) + "\n" for name, document in documents.items()},
    }


def _bound(parsed: Candidate, task: Task, verdict: Verdict) -> dict[str, Any]:
    """The launch plan of every case that generators see, with expressions evaluated."""
    if verdict.environment is None:
        return {}
    limits = limits_of(verdict.environment)
    return {case: binding.bind(parsed, task, case, limits) for case in task.cases}


def _resources(task: Task, verdict: Verdict) -> dict[str, Any]:
    return {
        "device_arch": verdict.environment.arch if verdict.environment else None,
        "registers": max((item.registers for item in on_device(verdict)), default=None),
        "kernels": resource_rows(verdict.resources, task.target),
        "target": task.target,
        "target_exceeds": verdict.target_exceeds,
    }
