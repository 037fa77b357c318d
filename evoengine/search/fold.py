"""What is settled: the one fold over stored trials, for the engine, for whoever counts, and for
reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from evoengine.config import RunConfig
from evoengine.population.elites import Population, resolution_of
from evoengine.protocols import Store, TrialSummary
from evoengine.records import Environment, Outcome


@dataclass(frozen=True)
class Settled:
    """A trial that is done: its first outcome, and the verified one where it was up for a place."""

    first: Outcome
    verified: Outcome | None

    @property
    def outcome(self) -> Outcome:
        """The outcome that counts."""
        return self.first.after(self.verified)


def settled_trials(
    trials: Iterable[tuple[int, TrialSummary]], would_take_place: Callable[[Outcome], bool]
) -> Iterator[Settled]:
    """The settled ones of the stored `trials`, from trial 0 on, in order.

    They end before the first trial that is open: one without a verdict, or one that would
    take a place and has no second verdict yet. Whoever asks `would_take_place` of a
    population must tell it each trial before taking the next.
    """
    for number, (trial, summary) in enumerate(trials):
        if trial != number or summary.outcome is None:
            return
        if summary.verified is None and would_take_place(summary.outcome):
            return
        yield Settled(summary.outcome, summary.verified)


def folded(trials: Iterable[tuple[int, TrialSummary]], population: Population) -> Iterator[Settled]:
    """The same, each told to `population` before it is given."""
    for settled in settled_trials(trials, population.would_take_place):
        population.tell(settled.first, settled.verified)
        yield settled


def count_settled(store: Store, config: RunConfig, environment: Environment) -> int:
    """How many trials of a stored run are settled."""
    population = Population(config.places, resolution_of(environment))
    return sum(1 for _ in folded(store.trials(), population))
