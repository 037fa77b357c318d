"""Runs a search with a view on stderr, and handles interruption by signals."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from rich.console import Group

from evoengine.cli import output
from evoengine.command_line import command
from evoengine.errors import EvoError, OutputError, StoreError, TaskError, UsageError
from evoengine.events import Event, RunEnded, RunStarted
from evoengine.paths import RunPaths
from evoengine.protocols import Store
from evoengine.records import EndKind, Outcome
from evoengine.report import as_json
from evoengine.report.elite_evidence import EliteEvidence
from evoengine.report.elites_table import elites_table
from evoengine.report.facts_grid import section
from evoengine.report.live_files import LiveFiles
from evoengine.report.live_view import LiveView
from evoengine.report.plain_view import PlainView
from evoengine.report.quiet_view import QuietView
from evoengine.report.rows import RunRows
from evoengine.report.run_report import run_head
from evoengine.report.search_marks import SearchMarks
from evoengine.search.control import Control
from evoengine.search.run_reader import RunReader

INTERRUPTED = 130  # 128 + SIGINT, as shells count
STOPPING = "stopping after the outstanding replies; press again to discard them"
DISCARDING = "discarding the outstanding replies; press again to exit at once"

Begin = Callable[[Control], Awaitable[RunEnded]]


class _Reading:
    """The run's store, opened for reading when it is first needed: before that it may not exist."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self._reader: RunReader | None = None
        self.begun = False  # whether the run has started

    def reader(self) -> RunReader:
        if self._reader is None:
            self._reader = RunReader(self._paths)
        return self._reader

    def store(self) -> Store:
        return self.reader().folder.store

    def evidence_of(self, trial: int) -> EliteEvidence:
        return self.reader().stored.evidence_of(trial)

    def marks_of(self, trial: int) -> SearchMarks:
        return self.reader().stored.marks_of(trial)

    def changed_of(self, outcome: Outcome) -> dict[str, int]:
        return self.reader().stored.changed_of(outcome)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


def search(
    paths: RunPaths,
    begin: Begin,
    environ: Mapping[str, str],
    time_limit_s: float | None,
    as_json_wanted: bool,
    quiet: bool,
) -> int:
    """Runs `begin` with a view on stderr, prints the result on stdout; returns the exit code."""
    reading = _Reading(paths)
    stopped: list[signal.Signals] = []
    try:
        view = QuietView(output.say) if quiet else _view(reading, as_json_wanted)
        with view:
            exporter = LiveFiles(paths, reading.store, view)

            def observe(event: Event) -> None:
                reading.begun = reading.begun or isinstance(event, RunStarted)
                exporter(event)
                view(event)

            async def interruptible() -> RunEnded:
                control = Control(observe, asyncio.Event(), asyncio.Event(), environ, time_limit_s)
                with _signals(control.stop, control.stop_now, stopped):
                    return await begin(control)

            ended = asyncio.run(interruptible())
        if _is_stored(paths):
            _finish(paths, ended, as_json_wanted)
        else:
            output.say(f"ended: {ended.reason}; nothing was stored")
    except (EvoError, KeyboardInterrupt) as error:
        # after an OutputError the run is complete: only its result could not be written
        unsaid = not isinstance(error, OutputError)
        if isinstance(error, TaskError) and _is_stored(paths):
            output.say(
                "this run keeps its stored task and references: repair them, then start a new run"
            )
        elif unsaid and (
            reading.begun or (not isinstance(error, (StoreError, UsageError)) and _is_stored(paths))
        ):
            _say_how_to_resume(paths)
        raise
    finally:
        reading.close()
    return INTERRUPTED if stopped and not ended.complete else 0


def _view(reading: _Reading, as_json_wanted: bool) -> LiveView | PlainView:
    console = output.messages()
    if console.is_terminal and not console.is_dumb_terminal:
        result_follows = output.results().is_terminal and not as_json_wanted
        return LiveView(
            console, time.monotonic, reading.evidence_of, reading.changed_of, result_follows
        )
    return PlainView(
        output.say,
        time.monotonic,
        lambda: datetime.now().astimezone(),
        reading.changed_of,
        reading.marks_of,
    )


@contextmanager
def _signals(
    stop: asyncio.Event, stop_now: asyncio.Event, stopped: list[signal.Signals]
) -> Iterator[None]:
    """The first SIGINT or SIGTERM sets `stop`, the second sets `stop_now`; a third has its default
    effect.
    """
    loop = asyncio.get_running_loop()

    def handle(number: signal.Signals) -> None:
        stopped.append(number)
        if len(stopped) == 1:
            stop.set()
            output.say(STOPPING)
        else:
            stop_now.set()
            release()
            output.say(DISCARDING)

    def release() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        release()


def _finish(paths: RunPaths, ended: RunEnded, as_json_wanted: bool) -> None:
    with RunReader(paths) as reader:
        rows = reader.rows(ended.reason, with_trials=as_json_wanted)
        try:
            files = reader.files()
            files.write_config()
            files.write_elites(reader.settled().elites)
        except OSError as error:
            output.say(
                f"the readable files could not be written: {error};"
                f" `{command('export', paths.root)}` rebuilds them"
            )
    try:
        _print_end(rows, as_json_wanted)
    finally:
        _say_where_it_is(paths)
    if not ended.complete:
        _say_how_to_resume(paths)
    elif ended.kind in (EndKind.tokens, EndKind.cost):
        output.say(f"to go on without a model: {command('resume', paths.root)} --generator tune")


def _print_end(rows: RunRows, as_json_wanted: bool) -> None:
    output.give(
        as_json_wanted,
        lambda: as_json.dumps(rows),
        lambda: Group(run_head(rows), section(elites_table(rows.elites))),
    )
    sys.stdout.flush()


def _say_where_it_is(paths: RunPaths) -> None:
    output.say(
        f"files: {paths.root} (the best kernels are in elites/); details:"
        f" {command('show', paths.root)}"
    )


def _say_how_to_resume(paths: RunPaths) -> None:
    output.say(f"resume with: {command('resume', paths.root)}")


def _is_stored(paths: RunPaths) -> bool:
    """Whether there is a run to resume; a run that was killed before its device was up is not
    one.
    """
    try:
        with RunReader(paths) as reader:
            return bool(reader.info)
    except EvoError:
        return False
