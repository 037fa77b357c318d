"""The runs of a folder, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from rich.console import Group, RenderableType
from rich.text import Text

from evoengine.records import Frozen, Status
from evoengine.report import format
from evoengine.report.fitted_table import Column, FittedTable, number_column, text_column
from evoengine.report.rows import EliteRow
from evoengine.report.table_notes import AS_SELECTED


class RunState(StrEnum):
    """The state of a run."""

    running = "running"  # a process holds its lock
    stopped = "stopped"  # it is not complete: it can be resumed
    complete = "complete"  # it has come to an end of its own, and its elites are measured
    unreadable = "unreadable"  # `problem` says why


class RunListRow(Frozen):
    """One run; fields that could not be read are empty."""

    name: str
    folder: str
    state: RunState
    holder: str = ""  # the process that works on it, e.g. "process 4711"
    task: str = ""
    generator: str = ""
    device: str = ""
    begun: str = ""  # ISO 8601, UTC
    settled: int = 0
    budget: int = 0
    best: tuple[EliteRow, ...] = ()  # the first place of every tier
    problem: str = ""


STATE_STYLES = {RunState.running: "green", RunState.stopped: "yellow", RunState.unreadable: "red"}


def runs_table(rows: Sequence[RunListRow]) -> RenderableType:
    """Name, task, best of each tier, trials, state and time of start."""
    columns = [
        text_column("run"),
        text_column("task"),
        text_column("best"),
        number_column("trials"),
        Column("state"),
        Column("begun (UTC)", optional=True),
    ]
    problems = any(row.problem for row in rows)
    table = FittedTable([*columns, text_column("problem")] if problems else columns)
    for row in rows:
        cells = [
            row.name,
            row.task or "-",
            _best(row),
            f"{row.settled}/{row.budget}" if row.budget else "-",
        ]
        cells += [row.state.value, row.begun[:16].replace("T", " ") or "-"]
        table.add(
            *cells, *([row.problem] if problems else []), style=STATE_STYLES.get(row.state, "")
        )
    if any(elite.awaits_final for row in rows for elite in row.best):
        return Group(table, Text(AS_SELECTED, style="dim"))
    return table


def _best(row: RunListRow) -> str:
    """`fp16 1.66x, fp8 0.43x`; on the emulator `fp16 267.2 us modelled`."""
    return ", ".join(f"{elite.tier} {_time(elite)}" for elite in row.best) or "-"


def _time(elite: EliteRow) -> str:
    if elite.modelled:
        return f"{format.micros(elite.latency_us)} us modelled"
    if elite.final_status not in (None, Status.correct):
        return str(elite.final_status)
    mark = "^" if elite.awaits_final else ""
    return (
        f"{elite.speedup.value:.2f}x{mark}"
        if elite.speedup
        else f"{format.micros(elite.latency_us)} us"
    )
