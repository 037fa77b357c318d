"""The live view of a run on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evoengine.events import Event
from evoengine.report import format
from evoengine.report.board import Board, Snapshot, TrialStep
from evoengine.report.elite_evidence import NO_EVIDENCE, EvidenceLookup
from evoengine.report.elites_table import elites_table
from evoengine.report.right_stripped import RightStripped
from evoengine.report.rows_from_store import ChangedTunables, all_tunables
from evoengine.report.run_model import generator_label
from evoengine.report.status_style import status_style

REFRESHES_PER_SECOND = 4  # more would take CPU time from the measurements
MOST_DOING = 8  # lines; the default number of trials in flight


class LiveView:
    """An Observer that redraws the state of a run on `console` while its context is active."""

    def __init__(
        self,
        console: Console,
        clock: Callable[[], float],
        evidence_of: EvidenceLookup = lambda _: NO_EVIDENCE,
        changed_of: ChangedTunables = all_tunables,
        result_follows: bool = False,
    ) -> None:
        """`result_follows`: the result is printed on the same terminal, so the last frame omits
        it.
        """
        self._board = Board(clock, evidence_of, changed_of)
        self._result_follows = result_follows
        self._live = Live(
            console=console,
            get_renderable=self.render,
            refresh_per_second=REFRESHES_PER_SECOND,
            redirect_stdout=False,
        )

    def __call__(self, event: Event) -> None:
        self._board(event)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def render(self) -> RenderableType:
        """The run as it is now."""
        return RightStripped(screen(self._board.snapshot(), self._result_follows))


def screen(now: Snapshot, result_follows: bool = False) -> RenderableType:
    """One frame: heading, progress, elites, counts, trials in flight, cost, notices."""
    if now.ended is not None and result_follows:
        return Group(_progress(now), *_notes(now))
    parts: list[RenderableType] = [_head(now), _progress(now)]
    if now.started is not None:
        parts += [elites_table(now.elites, title=None), _counts(now)]
    parts += [_doing(item, now.now) for item in now.doing[:MOST_DOING]]
    if len(now.doing) > MOST_DOING:
        parts.append(Text(f"  ... and {len(now.doing) - MOST_DOING} more", style="dim"))
    if now.spent.prompt_tokens or now.spent.completion_tokens:
        parts.append(Text(f"spent   {format.usage(now.spent, now.cost_known)}"))
    return Group(*parts, *_notes(now))


def _notes(now: Snapshot) -> list[Text]:
    return [Text(f"note    {format.printable(text)}", style="cyan") for text in now.notices]


def _head(now: Snapshot) -> Text:
    if now.started is None:
        return Text(f"starting compilers and device ... {format.duration(now.now - now.begun)}")
    info = now.started.info
    words = (
        f"{info.name}  {info.task.get('name', '')}  {generator_label(info.config)} "
        f" {now.started.environment.device}"
    )
    return Text(words, style="bold", no_wrap=True, overflow="ellipsis")


def _progress(now: Snapshot) -> RenderableType:
    if now.ended is not None:
        return Text(
            f"{now.settled}/{now.budget} trials, {now.ended.reason}, after"
            f" {format.duration(now.now - now.begun)}"
        )
    left = "" if now.left_s is None else f", about {format.duration(now.left_s)} left"
    if now.measures_elites:
        left = ", measuring each elite once more"
    grid = Table.grid(padding=(0, 1), expand=False)
    grid.add_row(
        ProgressBar(total=max(1, now.budget), completed=now.settled, width=30),
        Text(f"{now.settled}/{now.budget} trials, {format.duration(now.now - now.begun)}{left}"),
    )
    return grid


def _counts(now: Snapshot) -> Text:
    line = Text("settled ")
    for position, (status, count) in enumerate(now.counts.items()):
        line.append(f"{', ' if position else ''}{count} {status.value}", style=status_style(status))
    if now.last_settled is not None and now.ended is None:
        line.append(
            f", the last one {format.duration(now.now - now.last_settled)} ago", style="dim"
        )
    return line if now.counts else Text("settled none", style="dim")


def _doing(item: TrialStep, now: float) -> Text:
    words = format.printable(
        f"  trial {item.trial:>4}  {item.step}  {item.label}  {format.duration(now - item.since)}"
    )
    return Text(words, style="dim", no_wrap=True, overflow="ellipsis")
