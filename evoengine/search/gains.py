"""Since when nothing has become faster: a fold over settled trials."""

from __future__ import annotations

from evoengine.population.elites import Population
from evoengine.records import Outcome


class Gains:
    """The last gain of a run: a first place of any tier that was taken for the first time, or that
    became faster by more than its interval since the last gain of its tier.
    """

    def __init__(self, seeds: int) -> None:
        """`seeds` is the number of starting kernels: trials without gain are counted after them."""
        self._seeds = seeds
        self._settled = 0
        self._best: dict[str, Outcome] = {}  # by tier: in the first place at its last gain
        self.last: int | None = None  # the trial of the last gain

    def add(self, population: Population) -> None:
        """Notes the first places after the next settled trial; `population` holds them."""
        for elite in population.elites:
            before = self._best.get(elite.tier)
            if elite.place == 1 and (before is None or population.gains(before, elite.outcome)):
                self._best[elite.tier] = elite.outcome
                self.last = self._settled
        self._settled += 1

    @property
    def trials_without(self) -> int:
        """How many trials are settled since the last gain and since the starting kernels."""
        since = self._seeds if self.last is None else max(self._seeds, self.last + 1)
        return max(0, self._settled - since)
