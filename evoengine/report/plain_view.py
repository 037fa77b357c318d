"""The view of a run where stderr is not a terminal: one line for each settled trial, and where none
settles for a while, what is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self

from evoengine.events import (
    Event,
    Notice,
    RunEnded,
    RunStarted,
    Spent,
    TrialMoved,
    TrialSettled,
)
from evoengine.records import Status
from evoengine.report import format
from evoengine.report.board import Board
from evoengine.report.rows import TrialRow
from evoengine.report.rows_from_store import (
    ChangedTunables,
    all_tunables,
    trial_row,
)
from evoengine.report.run_model import generator_label
from evoengine.report.search_marks import NO_MARKS, MarksLookup
from evoengine.report.search_remark import search_remark

QUIET_S = 30.0  # without a line; on an emulator the first trial takes minutes


class PlainView:
    """An Observer that passes each line to `write` once."""

    def __init__(
        self,
        write: Callable[[str], None],
        clock: Callable[[], float],
        time_of_day: Callable[[], datetime],
        changed_of: ChangedTunables = all_tunables,
        marks_of: MarksLookup = lambda _: NO_MARKS,
    ) -> None:
        """`clock` counts seconds; `time_of_day` returns the local time with its UTC offset."""
        self._write_line = write
        self._clock = clock
        self._written_s = clock()  # when the last line was written
        self._time_of_day = time_of_day
        self._changed_of = changed_of
        self._marks_of = marks_of
        self._board = Board(clock)
        self._at_the_end = False  # whether the line on the measurements of elites is written

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Has nothing to close."""

    def __call__(self, event: Event) -> None:
        self._board(event)
        if isinstance(event, RunStarted):
            self._write(self._started(event))
        elif isinstance(event, TrialSettled):
            if not self._board.is_restored(event.outcome.trial):
                self._write(self._settled(event))
        elif isinstance(event, TrialMoved):
            self._moved(event)
        elif isinstance(event, Notice):
            self._write(f"note: {event.text}")
        elif isinstance(event, RunEnded):
            self._write(self._ended(event))
        elif isinstance(event, Spent):
            self._write(f"spent: {format.usage(event.total, self._board.snapshot().cost_known)}")

    def _write(self, text: str) -> None:
        self._written_s = self._clock()
        self._write_line(" ".join(format.printable(text).split("\n")))

    def _moved(self, event: TrialMoved) -> None:
        """Writes a line when the run begins to measure its elites, which takes a while, and where
        nothing was written for QUIET_S.
        """
        if not self._at_the_end and self._board.snapshot().measures_elites:
            self._at_the_end = True
            self._write("measuring each elite once more, which decides nothing")
        elif self._clock() - self._written_s >= QUIET_S:
            self._write(f"{self._time_of_day():%H:%M:%S}  trial {event.trial}: {event.step}")

    def _started(self, event: RunStarted) -> str:
        info = event.info
        verb = f"resumed after {event.settled} trials" if event.resumed else "started"
        about = (
            f"task {info.task.get('name', '')}, {event.trials} trials, generator"
            f" {generator_label(info.config)}"
        )
        return (
            f"run {info.name} {verb} {self._moment()}: {about}, device {event.environment.device}"
        )

    def _moment(self) -> str:
        return self._time_of_day().isoformat(sep=" ", timespec="seconds")

    def _settled(self, event: TrialSettled) -> str:
        now, row = (
            self._board.snapshot(),
            trial_row(
                event.outcome,
                event.took_place,
                self._board.firsts,
                self._changed_of,
                self._marks_of(event.outcome.trial),
            ),
        )
        left = f", {format.duration(now.left_s)} left" if now.left_s is not None else ""
        return f"[{now.settled}/{now.budget} {self._time_of_day():%H:%M:%S}{left}]  {_line(row)}"

    def _ended(self, event: RunEnded) -> str:
        now = self._board.snapshot()
        return (
            f"ended {self._moment()}: {event.reason}; {now.settled} of {now.budget} trials are"
            " settled"
        )


def _line(row: TrialRow) -> str:
    parts = [f"trial {row.trial}", row.status.value]
    if row.speedup and row.is_coarse:
        parts += [f"{format.rough(row.speedup)}x", f"{format.rough(row.latency_us)} us"]
    elif row.speedup:
        parts += [format.speedup(row.speedup), f"{format.micros(row.latency_us)} us"]
    elif row.modelled and row.latency_us:
        parts.append(
            f"{format.vs_first(row.vs_first)} as fast as the first seed,"
            f" {format.micros(row.latency_us)} us (modelled)"
        )
    if row.name != parts[0]:  # a kernel without a label is named after its trial
        parts.append(row.name)
    if row.changed:
        parts.append(format.tunables(row.changed))
    if row.place:
        parts.append(f"takes place {row.place} of {row.tier}")
    if row.status is not Status.correct:
        parts.append(row.reason)
    elif remark := search_remark(row):
        parts.append(remark)
    return "  ".join(parts)
