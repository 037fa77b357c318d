"""Keeps a run's readable files up to date while the run goes on."""

from __future__ import annotations

from collections.abc import Callable

from evoengine.command_line import command
from evoengine.errors import EvoError
from evoengine.events import Event, Notice, Observer, RunStarted, TrialSettled
from evoengine.paths import RunPaths
from evoengine.protocols import Store
from evoengine.report.files import RunFolderFiles


class LiveFiles:
    """An Observer that writes trials as they settle and elites as they change.

    A file that cannot be written never ends a run, because all of them can be rebuilt:
    the user is notified once through `notify`.
    """

    def __init__(self, paths: RunPaths, open_store: Callable[[], Store], notify: Observer) -> None:
        self._paths = paths
        self._open_store = open_store
        self._notify = notify
        self._exports: RunFolderFiles | None = None
        self._settled_before = 0
        self._last: tuple[int, ...] | None = None  # trials of the elites that were written last
        self._failed = False

    def __call__(self, event: Event) -> None:
        if self._failed:
            return
        try:
            self._follow(event)
        except (OSError, EvoError) as error:
            self._failed = True
            again = command("export", self._paths.root)
            self._notify(
                Notice(
                    f"the readable files of the run are no longer updated: {error}; `{again}`"
                    " rebuilds them"
                )
            )

    def _follow(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._exports = RunFolderFiles(self._paths, self._open_store(), event.info)
            self._exports.write_config()
            self._settled_before = event.settled
        elif isinstance(event, TrialSettled) and self._exports is not None:
            self._settled(self._exports, event)

    def _settled(self, exports: RunFolderFiles, event: TrialSettled) -> None:
        trial = event.outcome.trial
        # a trial is written once it is settled, and never changes after that
        if not exports.has_trial(trial):
            exports.write_trial(trial)
        holders = tuple(elite.outcome.trial for elite in event.elites)
        restoring = trial + 1 < self._settled_before
        if not restoring and holders != self._last:
            exports.write_elites(event.elites)
            self._last = holders
