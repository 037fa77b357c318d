"""The events of a run, for its observers. Observing never changes a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evoengine.records import Elite, EndKind, Environment, Outcome, RunInfo, Usage


@dataclass(frozen=True)
class RunStarted:
    """The run has started: its settings, its device, and the trials that were already settled."""

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
    """A trial is settled; these events come in the order of trial numbers."""

    outcome: Outcome
    took_place: int | None  # its place in its tier, from 1
    elites: tuple[Elite, ...]  # all tiers, after this trial


@dataclass(frozen=True)
class Spent:
    """The tokens and cost of the run's replies so far."""

    total: Usage


@dataclass(frozen=True)
class Notice:
    """A message for the user, e.g. that the emulator replaces a missing GPU."""

    text: str


@dataclass(frozen=True)
class RunEnded:
    """The run ended, or this process of it: `kind` says by what, `reason` with which figures."""

    reason: str
    kind: EndKind

    @property
    def complete(self) -> bool:
        """Whether it came to an end of its own, so that its elites are measured."""
        return self.kind.is_complete


Event = RunStarted | TrialMoved | TrialSettled | Spent | Notice | RunEnded
Observer = Callable[[Event], None]
