"""The files of one elite: all the evidence for its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evoengine.candidate import binding, kernel_file
from evoengine.candidate.arch import limits_of
from evoengine.candidate.kernel_file import Candidate
from evoengine.errors import StoreError
from evoengine.protocols import RaceRow
from evoengine.records import Elite, Verdict
from evoengine.report import as_json
from evoengine.report.lineage import lineage
from evoengine.report.rows_from_store import (
    FirstCorrectTimes,
    elite_row,
    on_device,
    resource_rows,
    verdict_row,
)
from evoengine.report.stored_trials import StoredTrials
from evoengine.task.schema import Task

# of EliteRow, beside the figures of the run's end in verdict.json
_OF_SELECTION = ("selected_speedup", "selected_latency_us", "awaits_final")


def elite_texts(elite: Elite, task: Task, stored: StoredTrials) -> dict[str, str]:
    """Name to text of every file in the elite's folder."""
    number = elite.outcome.trial
    proposal, evidence = stored.proposal_of(number), stored.evidence_of(number)
    verdict, shown = evidence.selected, evidence.shown
    if proposal is None or proposal.source is None or verdict is None or shown is None:
        raise StoreError(
            f"trial {number} holds place {elite.place} of {elite.tier} but its kernel or its"
            " verdict is not stored"
        )
    parsed = kernel_file.parse(proposal.source, f"trial {number}").tuned(proposal.tunables)
    name = elite.outcome.label or parsed.plan.name
    row = elite_row(elite, evidence, FirstCorrectTimes(verdict.is_modelled))
    figures = verdict_row(shown, name, parsed.tunables, task.target).model_copy(
        update={"speedup": row.speedup, "latency_us": row.latency_us}
    )
    selection = row.model_dump(mode="json", include={*_OF_SELECTION})
    head = {"trial": number, "tier": elite.tier, "place": elite.place}
    documents: dict[str, Any] = {
        "plan.json": {**head, "tunables": parsed.tunables, "cases": _bound(parsed, task, verdict)},
        "verdict.json": {
            **head,
            **figures.model_dump(mode="json"),
            **selection,
            "checks": shown.checks,
        },
        "samples.json": {**head, "timings": shown.timings},
        "resources.json": {**head, **_resources(task, verdict)},
        "environment.json": {**head, "environment": shown.environment},
        "lineage.json": {**head, "lineage": lineage(number, stored.proposal_of, stored.verdict_of)},
    }
    if evidence.final is not None:
        selected = verdict_row(verdict, name, parsed.tunables, task.target)
        documents["verification.json"] = {
            **head,
            **selected.model_dump(mode="json"),
            "checks": verdict.checks,
            "timings": verdict.timings,
        }
    if races := stored.races_of(number):
        documents["races.json"] = {**head, "races": race_documents(races)}
    return {
        "kernel.cu": parsed.with_defaults(),
        **{name: as_json.dumps(document) + "\n" for name, document in documents.items()},
    }


def race_documents(races: Iterable[RaceRow]) -> list[dict[str, Any]]:
    """The races with their raw times."""
    return [
        {
            "number": row.number,
            "holder_trial": row.holder,
            "began": row.began,
            "ended": row.ended,
            **row.race.model_dump(mode="json"),
        }
        for row in races
    ]


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
