"""Which stored trials are settled: the only place that decides it, for engine and reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evoengine.config import RunConfig
from evoengine.population.elites import Population
from evoengine.protocols import PastRace, Store, TrialSummary
from evoengine.records import TIMING_VERSION, Environment, Outcome


@dataclass(frozen=True)
class SettledTrial:
    """A settled trial: its first outcome, the verified one if it was promising, and its races."""

    first: Outcome
    verified: Outcome | None
    races: tuple[PastRace, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The final outcome."""
        return self.first.after(self.verified)


def settled_trials(
    trials: Iterable[tuple[int, TrialSummary]], population: Population
) -> Iterator[SettledTrial]:
    """The settled ones of the stored `trials`, from trial 0 on, in order.

    They end before the first open trial: one without a verdict, one that is promising and not
    verified yet, or one that has a race to run. The caller must add each trial to `population`
    before it takes the next.
    """
    for number, (trial, summary) in enumerate(trials):
        if trial != number or summary.outcome is None:
            return
        promising = summary.promising or population.would_take_place(summary.outcome)
        if promising and summary.verified is None:
            return
        settled = SettledTrial(summary.outcome, summary.verified, summary.races)
        if promising and population.rival_of(settled.outcome, settled.races) is not None:
            return
        yield settled


def fold_into_population(
    trials: Iterable[tuple[int, TrialSummary]], population: Population
) -> Iterator[SettledTrial]:
    """The settled trials, each added to `population` before it is yielded."""
    for settled in settled_trials(trials, population):
        add_to(population, settled)
        yield settled


def add_to(population: Population, settled: SettledTrial) -> int | None:
    """Adds a settled trial; returns the place that it takes, if any: only verified ones do."""
    if settled.verified is None:
        return None
    return population.add(settled.first, settled.verified, settled.races)


def count_settled(store: Store, config: RunConfig, environment: Environment) -> int:
    """The number of settled trials of a stored run of this timing version."""
    population = Population.of_run(config.places, environment, TIMING_VERSION)
    return sum(1 for _ in fold_into_population(store.trials(), population))
