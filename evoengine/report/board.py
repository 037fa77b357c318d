"""The state of a run, built from its events; every view of the run shows it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from evoengine.events import Event, Notice, RunEnded, RunStarted, Spent, TrialMoved, TrialSettled
from evoengine.records import Elite, Status, Usage, best_first
from evoengine.report.elite_evidence import NO_EVIDENCE, EvidenceLookup
from evoengine.report.rows import EliteRow
from evoengine.report.rows_from_store import (
    NO_MODELLED_TIMES,
    ChangedTunables,
    FirstCorrectTimes,
    all_tunables,
    elite_row,
)
from evoengine.report.run_model import cost_is_known

NOTICES_KEPT = 3  # on the screen; all of them are printed by the plain view
RATE_WINDOW = 32  # settled trials that the time left is estimated from


@dataclass(frozen=True)
class TrialStep:
    """The step that one trial in flight is in."""

    trial: int
    step: str
    label: str
    since: float


@dataclass(frozen=True)
class Snapshot:
    """The board at one moment; times are the clock's seconds."""

    now: float
    started: RunStarted | None
    begun: float
    last_settled: float | None  # None until this process has settled a trial
    settled: int
    counts: dict[Status, int]  # best first
    elites: tuple[EliteRow, ...]
    doing: tuple[TrialStep, ...]
    spent: Usage
    notices: tuple[str, ...]
    ended: RunEnded | None
    left_s: float | None  # None until a trial is settled, and while elites are measured
    measures_elites: bool = False  # once more, at the end of the run

    @property
    def cost_known(self) -> bool:
        """Whether the cost of what was spent is known."""
        return self.started is None or cost_is_known(self.started.info.config, self.spent)

    @property
    def budget(self) -> int:
        """The number of trials of the whole run; 0 before it started."""
        return self.started.trials if self.started else 0


class Board:
    """Observes a run; another thread may call `snapshot`."""

    def __init__(
        self,
        clock: Callable[[], float],
        evidence_of: EvidenceLookup = lambda _: NO_EVIDENCE,
        changed_of: ChangedTunables = all_tunables,
    ) -> None:
        self._clock = clock
        self._evidence_of = evidence_of
        self._changed_of = changed_of
        self._lock = threading.Lock()
        self._begun = clock()
        self._started: RunStarted | None = None
        self._settled = 0
        self._times: deque[float] = deque(maxlen=RATE_WINDOW)  # when trials of this process settled
        self._counts: dict[Status, int] = {}
        self._elites: tuple[Elite, ...] = ()
        self._rows: dict[int, EliteRow] = {}  # by trial
        self.firsts = NO_MODELLED_TIMES
        self._doing: dict[int, TrialStep] = {}
        self._spent = Usage()
        self._notices: deque[str] = deque(maxlen=NOTICES_KEPT)
        self._ended: RunEnded | None = None

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._update(event)

    def is_restored(self, trial: int) -> bool:
        """Whether an earlier process settled `trial`."""
        return self._started is None or trial < self._started.settled

    def snapshot(self) -> Snapshot:
        """The board now."""
        with self._lock:
            return Snapshot(
                now=self._clock(),
                started=self._started,
                begun=self._begun,
                last_settled=self._times[-1] if len(self._times) > 1 else None,
                settled=self._settled,
                counts=best_first(self._counts),
                elites=tuple(
                    self._rows[elite.outcome.trial].model_copy(update={"place": elite.place})
                    for elite in self._elites
                ),
                doing=tuple(self._doing[trial] for trial in sorted(self._doing)),
                spent=self._spent,
                notices=tuple(self._notices),
                ended=self._ended,
                left_s=self._left_s(),
                measures_elites=self._measures_elites(),
            )

    def _update(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._started = event
            self.firsts = FirstCorrectTimes(event.environment.is_modelled)
            self._times.append(self._clock())
        elif isinstance(event, TrialMoved):
            self._move(event)
        elif isinstance(event, TrialSettled):
            self._settle(event)
        elif isinstance(event, Spent):
            self._spent = event.total
        elif isinstance(event, Notice):
            self._notices.append(event.text)
        else:
            self._ended = event
            self._doing.clear()
            self._rows = self._rows_of(self._elites, {})

    def _move(self, event: TrialMoved) -> None:
        if event.trial < self._settled:  # the end of the run: elites are measured one by one
            done = [trial for trial in self._doing if trial != event.trial]
            for trial in done:
                del self._doing[trial]
            if done:
                self._rows = self._rows_of(self._elites, {})
        self._doing[event.trial] = TrialStep(event.trial, event.step, event.label, self._clock())

    def _settle(self, event: TrialSettled) -> None:
        outcome = event.outcome
        self._doing.pop(outcome.trial, None)
        self._settled = outcome.trial + 1
        self._counts[outcome.status] = self._counts.get(outcome.status, 0) + 1
        if not self.is_restored(outcome.trial):
            self._times.append(self._clock())
        self._elites = event.elites
        self.firsts.add(outcome)
        self._rows = self._rows_of(event.elites, self._rows)

    def _rows_of(
        self, elites: Iterable[Elite], known: Mapping[int, EliteRow]
    ) -> dict[int, EliteRow]:
        """The rows of `elites` by trial; those that are not `known` are read."""
        return {
            (trial := elite.outcome.trial): known.get(trial)
            or elite_row(elite, self._evidence_of(trial), self.firsts, self._changed_of)
            for elite in elites
        }

    def _measures_elites(self) -> bool:
        """Whether the run is at its end, where the elites are measured once more."""
        return any(trial < self._settled for trial in self._doing)

    def _left_s(self) -> float | None:
        if self._started is None or len(self._times) < 2 or self._measures_elites():
            return None
        each = (self._times[-1] - self._times[0]) / (len(self._times) - 1)
        return max(
            0.0, each * (self._started.trials - self._settled) - (self._clock() - self._times[-1])
        )
