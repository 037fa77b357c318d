"""The elites after each settled trial, so that a trial is judged by those up to its horizon."""

from __future__ import annotations

from evoengine.population.elites import Population


class ElitesSoFar:
    """One population for each settled trial; equal ones are the same object."""

    def __init__(self, empty: Population) -> None:
        self._none = empty.copy()
        self._after: list[Population] = []

    def __len__(self) -> int:
        """How many trials are noted."""
        return len(self._after)

    def add(self, population: Population) -> None:
        """Notes the elites after the next trial."""
        last = self._after[-1] if self._after else self._none
        changed = population.elites != last.elites
        self._after.append(population.copy() if changed else last)

    def after(self, trial: int) -> Population:
        """The elites after `trial`, which is settled; none before trial 0."""
        return self._after[trial] if trial >= 0 else self._none
