"""The same run without a terminal: one line for each settled trial."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from evoengine.events import Event, Notice, RunEnded, RunStarted, Spent, TrialSettled
from evoengine.records import Status
from evoengine.report import figures
from evoengine.report.board import Board
from evoengine.report.derive import trial_row
from evoengine.report.rows import TrialRow


class PlainView:
    """An Observer that gives lines to `write`, each of them once."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._write_line = write
        self._board = Board(clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing is open."""

    def __call__(self, event: Event) -> None:
        self._board(event)
        if isinstance(event, RunStarted):
            self._write(_started(event))
        elif isinstance(event, TrialSettled):
            if not self._board.is_restored(event.outcome.trial):
                self._write(self._settled(event))
        elif isinstance(event, Notice):
            self._write(f"note: {event.text}")
        elif isinstance(event, RunEnded):
            self._write(self._ended(event))
        elif isinstance(event, Spent):
            self._write(f"spent: {figures.usage(event.total)}")

    def _write(self, text: str) -> None:
        self._write_line(" ".join(figures.printable(text).split("\n")))

    def _settled(self, event: TrialSettled) -> str:
        now, row = self._board.snapshot(), trial_row(event.outcome, event.took_place, self._board.firsts)
        left = f", {figures.duration(now.left_s)} left" if now.left_s is not None else ""
        return f"[{row.trial + 1}/{now.budget}{left}]  {_words(row)}"

    def _ended(self, event: RunEnded) -> str:
        now = self._board.snapshot()
        return f"ended: {event.reason}; {now.settled} of {now.budget} trials are settled"


def _words(row: TrialRow) -> str:
    words = [row.status.value]
    if row.speedup:
        words += [figures.speedup(row.speedup), f"{figures.micros(row.latency_us)} us"]
    elif row.modelled and row.latency_us:
        words.append(f"{figures.vs_first(row.vs_first)} the first seed, {figures.micros(row.latency_us)} us (modelled)")
    words += [row.name, figures.tunables(row.tunables)]
    if row.place:
        words.append(f"takes place {row.place} of {row.tier}")
    if row.status is not Status.correct:
        words.append(row.reason)
    return "  ".join(words)


def _started(event: RunStarted) -> str:
    info = event.info
    verb = f"resumed after {event.settled} trials" if event.resumed else "started"
    words = f"run {info.name} {verb}: task {info.task.get('name', '')}, {event.trials} trials, generator {info.config.get('generator', '')}"
    return f"{words}, device {event.environment.device}"
