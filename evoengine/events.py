"""What a run tells those who watch it. Watching never changes a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evoengine.records import Elite, Environment, Outcome, RunInfo, Usage


@dataclass(frozen=True)
class RunStarted:
    """The run is open: its settings, the device, and how many trials were already settled."""

    info: RunInfo
    environment: Environment
    trials: int  # the budget
    settled: int  # by an earlier process
    resumed: bool


@dataclass(frozen=True)
class TrialMoved:
    """A trial entered a step, e.g. asking, compiling, checking mission, timing mission."""

    trial: int
    step: str
    label: str = ""


@dataclass(frozen=True)
class TrialSettled:
    """A trial is done, in the order of numbers."""

    outcome: Outcome
    took_place: int | None  # its place in its tier, from 1
    elites: tuple[Elite, ...]  # all tiers, after this trial


@dataclass(frozen=True)
class Spent:
    """What the run's replies have cost so far."""

    total: Usage


@dataclass(frozen=True)
class Notice:
    """A sentence that the user should see, e.g. what is used in place of what is missing."""

    text: str


@dataclass(frozen=True)
class RunEnded:
    """The run stopped: budget spent, exhausted, cost cap, or interrupted."""

    reason: str
    complete: bool


Event = RunStarted | TrialMoved | TrialSettled | Spent | Notice | RunEnded
Observer = Callable[[Event], None]
