"""Which stored trials are settled: the only place that decides it, for engine and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from evoengine.config import RunConfig
from evoengine.population.elites import Population, resolution_of
from evoengine.protocols import Store, TrialSummary
from evoengine.records import Environment, Outcome


@dataclass(frozen=True)
class SettledTrial:
    """A settled trial: its first outcome and, if it would have taken a place, the verified one."""

    first: Outcome
    verified: Outcome | None

    @property
    def outcome(self) -> Outcome:
        """The final outcome."""
        return self.first.after(self.verified)


def settled_trials(
    trials: Iterable[tuple[int, TrialSummary]], would_take_place: Callable[[Outcome], bool]
) -> Iterator[SettledTrial]:
    """The settled ones of the stored `trials`, from trial 0 on, in order.

    They end before the first open trial: one without a verdict, or one that would take a place
    and is not verified yet. With `would_take_place` of a population, the caller must add each
    trial to that population before it takes the next.
    """
    for number, (trial, summary) in enumerate(trials):
        if trial != number or summary.outcome is None:
            return
        if summary.verified is None and would_take_place(summary.outcome):
            return
        yield SettledTrial(summary.outcome, summary.verified)


def fold_into_population(
    trials: Iterable[tuple[int, TrialSummary]], population: Population
) -> Iterator[SettledTrial]:
    """The settled trials, each added to `population` before it is yielded."""
    for settled in settled_trials(trials, population.would_take_place):
        population.add(settled.first, settled.verified)
        yield settled


def count_settled(store: Store, config: RunConfig, environment: Environment) -> int:
    """The number of settled trials of a stored run."""
    population = Population(config.places, resolution_of(environment))
    return sum(1 for _ in fold_into_population(store.trials(), population))
