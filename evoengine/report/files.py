"""The readable files of a run folder, written from its store; they can be rebuilt at any time.

config.yaml              the resolved settings
elites/<tier>/<place>/   kernel.cu, plan.json, verdict.json, samples.json, resources.json,
                         environment.json, lineage.json, races.json, verification.json
trials/<n>/              kernel.cu, prompt.md, reply.md, races.json, error_map.svg of a wrong
                         result, verdict.json
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import yaml

from evoengine.errors import StoreError
from evoengine.paths import RunPaths
from evoengine.protocols import Store
from evoengine.records import Elite, RunInfo
from evoengine.report import elite_files, trial_files
from evoengine.report.folders import remove_path, replace_folder, write_file
from evoengine.report.stored_trials import StoredTrials
from evoengine.task.schema import Task

_FOLDER_NAME = re.compile(r"\w[\w.-]*")  # one plain component: no separator, no dots alone


class RunFolderFiles:
    """Writes the files of one run from `store`."""

    def __init__(self, paths: RunPaths, store: Store, info: RunInfo) -> None:
        self._paths = paths
        self._stored = StoredTrials(store)
        self._info = info
        self._task = Task.model_validate(info.task)
        # (tier, place) -> the trial whose files were written there, and whether it was measured at
        # the end of the run
        self._places: dict[tuple[str, str], tuple[int, bool]] = {}

    def write_config(self) -> None:
        """Writes config.yaml."""
        info = self._info
        head = (
            f"# run {info.name}, begun {info.created} by evoengine {info.version}; a copy:"
            " editing it has no effect\n"
        )
        write_file(
            self._paths.config,
            head + yaml.safe_dump(info.config, sort_keys=False, allow_unicode=True),
        )

    def write_elites(self, elites: Iterable[Elite]) -> None:
        """Makes elites/ hold exactly `elites`; raises StoreError if a tier's name cannot be a
        folder's.
        """
        wanted = {(_checked(elite.tier), str(elite.place)): elite for elite in elites}
        for key, elite in wanted.items():
            trial = elite.outcome.trial
            written = (trial, self._stored.final_of(trial) is not None)
            if self._places.get(key) != written:
                files = elite_files.elite_texts(elite, self._task, self._stored)
                replace_folder(self._paths.elite(elite.tier, elite.place), files)
                self._places[key] = written
        self._remove_all_but(set(wanted))

    def has_trial(self, number: int) -> bool:
        """Whether the folder of a trial is complete."""
        return (self._paths.trial(number) / trial_files.WRITTEN_LAST).is_file()

    def write_trial(self, number: int) -> None:
        """Writes the folder of one trial; does nothing for a trial without a verdict."""
        for name, text in trial_files.trial_texts(number, self._stored).items():
            write_file(self._paths.trial(number) / name, text)

    def _remove_all_but(self, wanted: set[tuple[str, str]]) -> None:
        root = self._paths.elites
        for tier in list(root.iterdir()) if root.is_dir() else ():
            if tier.is_symlink() or tier.name not in {name for name, _ in wanted}:
                remove_path(tier)
                continue
            for place in list(tier.iterdir()):
                if (tier.name, place.name) not in wanted:
                    remove_path(place)
        self._places = {key: trial for key, trial in self._places.items() if key in wanted}


def _checked(tier: str) -> str:
    """`tier`, which becomes a folder's name; raises StoreError if it could be a path."""
    if not _FOLDER_NAME.fullmatch(tier):
        raise StoreError(
            f"expected the name of a tier to be a plain folder name, got {tier!r}: its elites are"
            " not exported"
        )
    return tier
