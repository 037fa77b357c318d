"""Reads a stored run into rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from evoengine.config import RunConfig
from evoengine.errors import UsageError
from evoengine.generate.tier_shares import shares_of
from evoengine.generate.tuned_model import TUNE
from evoengine.paths import RunPaths
from evoengine.population.elites import Population, has_races
from evoengine.records import Elite, Environment, Outcome, RunInfo, Status
from evoengine.report.files import RunFolderFiles
from evoengine.report.rows import EliteRow, RunRows, TrialDetail, TrialRow
from evoengine.report.rows_from_store import (
    FirstCorrectTimes,
    display_name,
    elite_row,
    trial_detail,
    trial_row,
    verdict_row,
)
from evoengine.report.run_model import cost_is_known, method_name, model_name, tune_share
from evoengine.report.search_marks import NO_MARKS, SearchMarks, last_unbeaten
from evoengine.report.stored_trials import StoredTrials
from evoengine.search.changes import changes_of, current_info
from evoengine.search.known_settings import refuse_unknown_settings
from evoengine.search.run_ends import current_end
from evoengine.search.run_lessons import RunLessons
from evoengine.search.settled_trials import SettledTrial, fold_into_population
from evoengine.search.starting_kernels import starting_kernels
from evoengine.store.run_folder import RunFolder, open_run
from evoengine.task.schema import Task


@dataclass(frozen=True)
class SettledRun:
    """The settled trials of a run, in order, and the elites after them."""

    trials: list[SettledTrial]
    elites: tuple[Elite, ...]

    @property
    def outcomes(self) -> list[Outcome]:
        """The final outcomes, in order."""
        return [settled.outcome for settled in self.trials]


class RunReader:
    """A run opened for reading; it may be live."""

    def __init__(self, paths: RunPaths) -> None:
        """Raises StoreError."""
        self.folder: RunFolder = open_run(paths, read_only=True)
        self.paths = paths
        self.stored = StoredTrials(self.folder.store)

    def close(self) -> None:
        """Closes the database."""
        self.folder.close()

    def __enter__(self) -> RunReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def info(self) -> RunInfo:
        """The info of the run with its current settings; raises UsageError if it has not begun, and
        StoreError where this version cannot read it.
        """
        found = current_info(self.folder.store)
        if found is None:
            raise UsageError(
                f"{self.paths.root}: the run has not begun yet: its device is still starting"
            )
        refuse_unknown_settings(found, self.paths.database)
        return found

    @property
    def config(self) -> RunConfig:
        """The current settings."""
        return RunConfig.model_validate(self.info.config)

    @property
    def environment(self) -> Environment | None:
        """The device and software versions of the verdicts."""
        found = self.info.environment
        return None if found is None else Environment.model_validate(found)

    def files(self) -> RunFolderFiles:
        """The writer of the run's readable files."""
        return RunFolderFiles(self.paths, self.folder.store, self.info)

    def settled(self) -> SettledRun:
        """The settled trials and the elites after them."""
        population = Population.of_run(
            self.config.places, self.environment, self.info.timing_version
        )
        trials = list(fold_into_population(self.folder.store.trials(), population))
        return SettledRun(trials, population.elites)

    def lessons(self) -> RunLessons:
        """The lessons of the settled trials."""
        settled_run = self.settled()
        verified = {item.first.trial for item in settled_run.trials if item.verified is not None}
        found = RunLessons(
            self.folder.store,
            self.config,
            self.environment,
            lambda trial: trial not in verified and self.stored.is_coarse(trial),
        )
        for outcome in settled_run.outcomes:
            found.add(outcome)
        return found

    def rows(self, ended: str = "", with_trials: bool = True) -> RunRows:
        """The rows that are shown of the run."""
        info, settled_run = self.info, self.settled()
        outcomes = settled_run.outcomes
        store, environment, first_times = (
            self.folder.store,
            self.environment,
            self._first_correct_times(outcomes),
        )
        spent = store.spent()
        end = current_end(store, len(outcomes))
        return RunRows(
            name=info.name,
            folder=str(self.paths.root),
            task=str(info.task.get("name", "")),
            generator=str(info.config.get("generator", "")),
            model=model_name(info.config),
            method=method_name(info.config),
            tier_shares=self._tier_shares(outcomes),
            device=environment.device if environment else "",
            modelled=first_times.modelled,
            created=info.created,
            version=info.version,
            timing_version=info.timing_version,
            audit_findings=info.audit_findings,
            budget=int(info.config.get("trials", 0)),
            settled=len(outcomes),
            tuned=sum(outcome.operator == TUNE for outcome in outcomes),
            tune_share=tune_share(info.config),
            ended=ended or (end.reason if end else ""),
            ended_by=end.kind if end else None,
            counts=_counts(outcomes),
            usage=spent.usage,
            unanswered=spent.unanswered,
            changes=tuple(
                f"from trial {row.change.trial} on, {words}"
                for row in changes_of(store)
                for words in row.change.words
            ),
            cost_known=cost_is_known(info.config, spent.usage),
            baselines=info.baselines,
            baseline_us=info.baseline_us,
            baseline_problems=info.baseline_problems,
            elites=self._elite_rows(settled_run, first_times),
            trials=self._trial_rows(settled_run, first_times) if with_trials else (),
        )

    def _tier_shares(self, outcomes: list[Outcome]) -> dict[str, float]:
        """The share of each tier in the trials that ask; empty where nothing asks, and before the
        starting kernels are settled, whose tiers count.
        """
        config = self.config
        seeds = starting_kernels(self.folder.store, config)
        if not method_name(self.info.config) or len(outcomes) < len(seeds):
            return {}
        begun = {outcome.tier for outcome in outcomes[: len(seeds)]}
        return shares_of(config.tiers, Task.model_validate(self.info.task), begun)

    def _elite_rows(
        self, settled_run: SettledRun, first_times: FirstCorrectTimes
    ) -> tuple[EliteRow, ...]:
        tiers = Task.model_validate(self.info.task).tiers
        return tuple(
            elite_row(
                elite,
                self.stored.evidence_of(elite.outcome.trial),
                first_times,
                self.stored.changed_of,
                tiers,
            )
            for elite in settled_run.elites
        )

    def _trial_rows(
        self, settled_run: SettledRun, first_times: FirstCorrectTimes
    ) -> tuple[TrialRow, ...]:
        places = {elite.outcome.trial: elite.place for elite in settled_run.elites}
        return tuple(
            trial_row(
                outcome,
                places.get(outcome.trial),
                first_times,
                self.stored.changed_of,
                self._marks_of(trial),
            )
            for outcome, trial in zip(settled_run.outcomes, settled_run.trials, strict=True)
        )

    def _first_correct_times(self, outcomes: list[Outcome]) -> FirstCorrectTimes:
        environment = self.environment
        first_times = FirstCorrectTimes(environment is not None and environment.is_modelled)
        for outcome in outcomes:
            first_times.add(outcome)
        return first_times

    def _marks_of(self, settled: SettledTrial) -> SearchMarks:
        """As StoredTrials.marks_of; of verified trials nothing is read, of others the first verdict
        where it may be coarse.
        """
        if settled.verified is not None:
            return SearchMarks(lost_to=last_unbeaten(settled.races))
        if settled.first.status is not Status.correct or not self._has_races:
            return NO_MARKS
        return SearchMarks(is_coarse=self.stored.is_coarse(settled.first.trial))

    @cached_property
    def _has_races(self) -> bool:
        return has_races(self.environment, self.info.timing_version)

    def trial(self, number: int) -> TrialDetail:
        """All about one trial; raises UsageError if it is not settled."""
        settled_run, stored = self.settled(), self.stored
        if not 0 <= number < len(settled_run.outcomes):
            known = (
                f"0 to {len(settled_run.outcomes) - 1} are settled"
                if settled_run.outcomes
                else "none is settled yet"
            )
            raise UsageError(f"no trial {number} in run {self.info.name}: {known}")
        proposal, first, verified, final = (
            stored.proposal_of(number),
            stored.first_verdict_of(number),
            stored.verification_of(number),
            stored.final_of(number),
        )
        assert proposal is not None and first is not None
        places = {elite.outcome.trial: elite.place for elite in settled_run.elites}
        first_times = self._first_correct_times(settled_run.outcomes)
        target = Task.model_validate(self.info.task).target
        rows = [
            (
                verdict_row(item, display_name(proposal.label, number), proposal.tunables, target)
                if item
                else None
            )
            for item in (first, verified, final)
        ]
        assert rows[0] is not None
        usages = [reply.usage for reply in stored.replies_of(number)]
        row = trial_row(
            settled_run.outcomes[number],
            places.get(number),
            first_times,
            stored.changed_of,
            self._marks_of(settled_run.trials[number]),
        )
        return trial_detail(
            row,
            proposal,
            usages,
            rows[0],
            rows[1],
            self.info.config,
            stored.times_of(number),
            stored.races_of(number),
            rows[2],
            number in places and stored.evidence_of(number).awaits_final,
        )


def rewrite_files(paths: RunPaths) -> int:
    """Writes all readable files of a run from its store; returns the number of trials."""
    with RunReader(paths) as reader:
        files, settled_run = reader.files(), reader.settled()
        files.write_config()
        files.write_elites(settled_run.elites)
        for outcome in settled_run.outcomes:
            files.write_trial(outcome.trial)
        return len(settled_run.outcomes)


def _counts(outcomes: list[Outcome]) -> dict[str, int]:
    from evoengine.population.status_counts import StatusCounts

    counts = StatusCounts()
    for outcome in outcomes:
        counts.add(outcome)
    return {status.value: count for status, count in counts.by_status.items()}
