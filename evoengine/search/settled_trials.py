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
    """A settled trial: its first outcome, the verified one if that counts, and its races."""

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

    They end before the first open trial: one without a verdict, one whose verification would count
    and is not there yet, or one that has a race to run. The caller must add each trial to
    `population` before it takes the next.
    """
    for number, (trial, summary) in enumerate(trials):
        if trial != number or summary.outcome is None:
            return
        if not is_verified(summary.outcome, summary.promising, population):
            yield SettledTrial(summary.outcome, None)
            continue
        if summary.verified is None:
            return
        settled = SettledTrial(summary.outcome, summary.verified, summary.races)
        if population.rival_of(settled.outcome, settled.races) is not None:
            return
        yield settled


def is_verified(first: Outcome, promising: bool | None, population: Population) -> bool:
    """Whether a trial's verification counts: it would take a place in `population`, which holds the
    trials before it, and would have in the one of its horizon (`promising`; None: not stored).
    """
    return promising is not False and population.would_take_place(first)


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
