"""The readable files of a run folder, made from its store; they can be deleted and rebuilt at any time.

config.yaml                     the resolved settings
elites/<tier>/<place>/          kernel.cu, plan.json, verdict.json, samples.json, resources.json, environment.json, lineage.json
trials/<n>/                     kernel.cu, prompt.md, reply.md, verdict.json
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

from evoengine import atomic, candidate, plan
from evoengine.arch import limits_of
from evoengine.candidate import Candidate
from evoengine.errors import CandidateError, StoreError
from evoengine.paths import RunPaths
from evoengine.records import Elite, Proposal, Reply, RunInfo, Verdict
from evoengine.report import as_json
from evoengine.report.folders import remove, replace_folder
from evoengine.report.lineage import lineage
from evoengine.report.rows import on_device, resource_rows, verdict_row
from evoengine.seams import ProposalRow, ReplyRow, Store, VerdictRow
from evoengine.task import Task

_FOLDER_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", re.ASCII)  # one plain component: no separator, no dots alone
VERDICT = "verdict.json"  # written last in a trial's folder: a folder with it is whole
TURNS = 16  # far more than a trial has


class Exports:
    """Writes the files of one run from `store`."""

    def __init__(self, paths: RunPaths, store: Store, info: RunInfo) -> None:
        self._paths = paths
        self._store = store
        self._info = info
        self._task = Task.model_validate(info.task)
        self._places: dict[tuple[str, int], int] = {}  # (tier, place) -> the trial whose files stand there

    def config(self) -> None:
        """Writes config.yaml."""
        head = (
            f"# run {self._info.name}, begun {self._info.created} by evoengine {self._info.version}; a copy: changing it changes nothing\n"
        )
        atomic.write_text(self._paths.config, head + yaml.safe_dump(self._info.config, sort_keys=False, allow_unicode=True))

    def elites(self, elites: Iterable[Elite]) -> None:
        """Makes elites/ hold exactly `elites`."""
        wanted = {(_checked(elite.tier), elite.place): elite for elite in elites}
        for (tier, place), elite in wanted.items():
            if self._places.get((tier, place)) != elite.outcome.trial:
                replace_folder(self._paths.elite(tier, place), self._elite_files(elite))
                self._places[tier, place] = elite.outcome.trial
        self._remove_stale({(tier, str(place)) for tier, place in wanted})

    def trial(self, number: int) -> None:
        """Writes the folder of one trial; nothing for a trial without a verdict."""
        files = self._trial_files(number)
        if files is not None:
            for name, text in files.items():
                atomic.write_text(self._paths.trial(number) / name, text)

    def has_trial(self, number: int) -> bool:
        """Whether the folder of a trial is whole."""
        return (self._paths.trial(number) / VERDICT).is_file()

    def verdict_of(self, number: int) -> Verdict | None:
        """The verdict that counts: the one of a fresh process where there is one."""
        row = self._store.get(VerdictRow, number, 1) or self._store.get(VerdictRow, number, 0)
        return row.verdict if row else None

    def proposal_of(self, number: int) -> Proposal | None:
        """What was proposed for a trial."""
        row = self._store.get(ProposalRow, number)
        return row.proposal if row else None

    def _remove_stale(self, wanted: set[tuple[str, str]]) -> None:
        root = self._paths.elites
        for tier in root.iterdir() if root.is_dir() else ():
            for place in tier.iterdir() if tier.is_dir() and not tier.is_symlink() else ():
                if (tier.name, place.name) not in wanted:
                    remove(place)
            if not any(name == tier.name for name, _ in wanted):
                remove(tier)
        self._places = {key: trial for key, trial in self._places.items() if (key[0], str(key[1])) in wanted}

    def _elite_files(self, elite: Elite) -> dict[str, str]:
        number = elite.outcome.trial
        proposal, verdict = self.proposal_of(number), self.verdict_of(number)
        if proposal is None or proposal.source is None or verdict is None:
            raise StoreError(f"{self._paths.database}: trial {number} holds a place but has no kernel or no verdict")
        parsed = candidate.parse(proposal.source, f"trial {number}").tuned(proposal.tunables)
        row = verdict_row(verdict, elite.outcome.label or parsed.plan.name, parsed.tunables, self._task.target)
        head = {"trial": number, "tier": elite.tier, "place": elite.place}
        return {
            "kernel.cu": parsed.with_defaults(),
            "plan.json": _text({**head, "tunables": parsed.tunables, "cases": self._bound(parsed, verdict)}),
            VERDICT: _text({**head, **row.model_dump(mode="json"), "checks": [item.model_dump(mode="json") for item in verdict.checks]}),
            "samples.json": _text({**head, "timings": [item.model_dump(mode="json") for item in verdict.timings]}),
            "resources.json": _text({**head, **self._resources(verdict)}),
            "environment.json": _text(verdict.environment.model_dump(mode="json") if verdict.environment else {}),
            "lineage.json": _text(
                {**head, "lineage": [item.model_dump(mode="json") for item in lineage(number, self.proposal_of, self.verdict_of)]}
            ),
        }

    def _bound(self, parsed: Candidate, verdict: Verdict) -> dict[str, Any]:
        """The launch plan of every case that is shown, with numbers in place of expressions."""
        if verdict.environment is None:
            return {}
        limits = limits_of(verdict.environment)
        return {case: plan.bind(parsed, self._task, case, limits).model_dump(mode="json") for case in self._task.cases}

    def _resources(self, verdict: Verdict) -> dict[str, Any]:
        rows = resource_rows(verdict.resources, self._task.target)
        return {
            "device_arch": verdict.environment.arch if verdict.environment else None,
            "registers": max((item.registers for item in on_device(verdict)), default=None),
            "kernels": [row.model_dump(mode="json") for row in rows],
            "target": self._task.target.model_dump(mode="json") if self._task.target else None,
            "target_exceeds": list(verdict.target_exceeds),
        }

    def _trial_files(self, number: int) -> dict[str, str] | None:
        proposal, verdict = self.proposal_of(number), self.verdict_of(number)
        if proposal is None or verdict is None:
            return None
        files: dict[str, str] = {}
        for turn, reply in enumerate(self.replies(number)):
            suffix = f"_{turn + 1}" if turn else ""
            files[f"prompt{suffix}.md"] = reply.prompt
            files[f"reply{suffix}.md"] = reply.text
        if proposal.source is not None:
            files["kernel.cu"] = _as_tried(proposal)
        first = self._store.get(VerdictRow, number, 0)
        if first is not None and first.verdict is not verdict and self._store.get(VerdictRow, number, 1) is not None:
            files["verdict_first.json"] = as_json.dumps(first.verdict)
        about = proposal.model_dump(mode="json", exclude={"source"})
        return {**files, VERDICT: _text({"trial": number, "proposal": about, "verdict": verdict.model_dump(mode="json")})}

    def replies(self, number: int) -> list[Reply]:
        """The stored replies of a trial, by turn."""
        found = []
        for turn in range(TURNS):
            row = self._store.get(ReplyRow, number, turn)
            if row is None:
                break
            found.append(row.reply)
        return found


def _as_tried(proposal: Proposal) -> str:
    """The source with the chosen tunables first; as it came when its header cannot be read."""
    assert proposal.source is not None
    try:
        return candidate.parse(proposal.source).tuned(proposal.tunables).with_defaults()
    except CandidateError:
        return proposal.source


def _checked(tier: str) -> str:
    """`tier`, which becomes a folder's name; raises StoreError for one that could lead elsewhere."""
    if not _FOLDER_NAME.match(tier):
        raise StoreError(f"expected the name of a tier to be a plain folder name, got {tier!r}: its elites are not exported")
    return tier


def _text(value: dict[str, Any]) -> str:
    return as_json.dumps(value) + "\n"
