"""Reads a stored run into rows."""

from __future__ import annotations

from dataclasses import dataclass

from evoengine.config import RunConfig
from evoengine.errors import UsageError
from evoengine.paths import RunPaths
from evoengine.population.elites import Population, resolution_of
from evoengine.records import Elite, Environment, Outcome, RunInfo
from evoengine.report.asked_model import knows_cost, model_of
from evoengine.report.files import RunFolderFiles
from evoengine.report.rows import RunRows, TrialDetail
from evoengine.report.rows_from_store import (
    Firsts,
    elite_row,
    name_of,
    trial_detail,
    trial_row,
    verdict_row,
)
from evoengine.report.stored_trials import StoredTrials
from evoengine.search.changes import changes_of, current_info
from evoengine.search.fold import folded
from evoengine.store.run_folder import RunFolder, open_run
from evoengine.task.schema import Task


@dataclass(frozen=True)
class Folded:
    """The settled trials of a stored run in order, and the elites after them."""

    outcomes: list[Outcome]  # as they count: verified where they were up for a place
    elites: tuple[Elite, ...]


class RunReader:
    """A run opened for reading; it may be live."""

    def __init__(self, paths: RunPaths) -> None:
        """Raises StoreError."""
        self.folder: RunFolder = open_run(paths, read_only=True)
        self.paths = paths
        self.stored = StoredTrials(self.folder.store)

    def close(self) -> None:
        """Lets the database go."""
        self.folder.close()

    def __enter__(self) -> RunReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def info(self) -> RunInfo:
        """What the run was started with, its settings as they are after every resume."""
        found = current_info(self.folder.store)
        if found is None:
            raise UsageError(
                f"{self.paths.root}: the run has not begun yet: its device is still being"
                " brought up"
            )
        return found

    @property
    def environment(self) -> Environment | None:
        """What its verdicts are found with."""
        found = self.info.environment
        return None if found is None else Environment.model_validate(found)

    def exports(self) -> RunFolderFiles:
        """The writer of its readable files."""
        return RunFolderFiles(self.paths, self.folder.store, self.info)

    def fold(self) -> Folded:
        """What is settled, and the elites after it."""
        population = Population(
            RunConfig.model_validate(self.info.config).places, resolution_of(self.environment)
        )
        outcomes = [settled.outcome for settled in folded(self.folder.store.trials(), population)]
        return Folded(outcomes, population.elites)

    def rows(self, ended: str = "", with_trials: bool = True) -> RunRows:
        """The run as a person sees it."""
        info, found = self.info, self.fold()
        places = {elite.outcome.trial: elite.place for elite in found.elites}
        store, environment, firsts = (
            self.folder.store,
            self.environment,
            self._firsts(found.outcomes),
        )
        changed_of, spent = self.stored.changed_of, store.spent()
        return RunRows(
            name=info.name,
            folder=str(self.paths.root),
            task=str(info.task.get("name", "")),
            generator=str(info.config.get("generator", "")),
            model=model_of(info.config),
            device=environment.device if environment else "",
            modelled=firsts.modelled,
            created=info.created,
            version=info.version,
            budget=int(info.config.get("trials", 0)),
            settled=len(found.outcomes),
            ended=ended,
            counts=_counts(found.outcomes),
            usage=spent.usage,
            unanswered=spent.unanswered,
            changes=tuple(
                f"from trial {row.change.trial} on, {words}"
                for row in changes_of(store)
                for words in row.change.words
            ),
            cost_known=knows_cost(info.config, spent.usage),
            baselines=info.baselines,
            baseline_us=info.baseline_us,
            baseline_problems=info.baseline_problems,
            elites=tuple(
                elite_row(elite, self.stored.verdict_of(elite.outcome.trial), firsts, changed_of)
                for elite in found.elites
            ),
            trials=(
                tuple(
                    trial_row(outcome, places.get(outcome.trial), firsts, changed_of)
                    for outcome in found.outcomes
                )
                if with_trials
                else ()
            ),
        )

    def _firsts(self, outcomes: list[Outcome]) -> Firsts:
        environment = self.environment
        firsts = Firsts(environment is not None and environment.is_modelled)
        for outcome in outcomes:
            firsts.tell(outcome)
        return firsts

    def trial(self, number: int) -> TrialDetail:
        """One trial whole; raises UsageError for one that is not settled."""
        found, stored = self.fold(), self.stored
        if not 0 <= number < len(found.outcomes):
            known = (
                f"0 to {len(found.outcomes) - 1} are settled"
                if found.outcomes
                else "none is settled yet"
            )
            raise UsageError(f"no trial {number} in run {self.info.name}: {known}")
        proposal, first, verified = (
            stored.proposal_of(number),
            stored.first_verdict_of(number),
            stored.verification_of(number),
        )
        assert proposal is not None and first is not None
        places = {elite.outcome.trial: elite.place for elite in found.elites}
        firsts = self._firsts(found.outcomes)
        target = Task.model_validate(self.info.task).target
        rows = [
            (
                verdict_row(item, name_of(proposal.label, number), proposal.tunables, target)
                if item
                else None
            )
            for item in (first, verified)
        ]
        assert rows[0] is not None
        usages = [reply.usage for reply in stored.replies_of(number)]
        row = trial_row(found.outcomes[number], places.get(number), firsts, stored.changed_of)
        return trial_detail(
            row, proposal, usages, rows[0], rows[1], self.info.config, stored.times_of(number)
        )


def rebuild(paths: RunPaths) -> int:
    """Writes all readable files of a run anew from its store; how many trials there were."""
    with RunReader(paths) as reader:
        exports, found = reader.exports(), reader.fold()
        exports.config()
        exports.elites(found.elites)
        for outcome in found.outcomes:
            exports.trial(outcome.trial)
        return len(found.outcomes)


def _counts(outcomes: list[Outcome]) -> dict[str, int]:
    from evoengine.population.summary import Summary

    summary = Summary()
    for outcome in outcomes:
        summary.tell(outcome)
    return {status.value: count for status, count in summary.counts.items()}
