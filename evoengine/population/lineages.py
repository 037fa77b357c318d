"""Islands: the correct trials that descend from one kernel in one tier, with their own best ones.

A fold over settled trials in the order of their numbers, like the elites, whose places it leaves
alone. An island's best ones need no verification: they are parents, not results.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from evoengine.records import Outcome, Status

ISLANDS = 3  # of a tier, as many as the population has places there
PLACES = 3  # of an island
RECENT = 4  # last trials of an island; a prompt that shows its lessons has room for more
NO_STRUCTURE = ("seed", "tune")  # operators whose trials search no new structure


@dataclass
class Lineage:
    """One island: its tier, the trial that founded it, its best trials and its last ones."""

    tier: str
    founder: int
    # (score, trial, source digest), best first
    best: list[tuple[float, int, str]] = field(default_factory=list)
    recent: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))
    trials_without_gain: int = 0

    def add(self, outcome: Outcome) -> None:
        """Adds a settled trial, failures included."""
        self.recent.append(outcome.trial)
        score = score_of(outcome)
        if score is not None and (not self.best or score < self.best[0][0]):
            self.trials_without_gain = 0
        elif outcome.operator not in NO_STRUCTURE:
            self.trials_without_gain += 1
        if score is None:
            return
        ranked = sorted([*self.best, (score, outcome.trial, outcome.source_digest)])
        sources: dict[str, tuple[float, int, str]] = {}
        for item in ranked:
            sources.setdefault(item[2], item)
        self.best = list(sources.values())[:PLACES]


class Lineages:
    """The islands of a run."""

    def __init__(self) -> None:
        self._islands: dict[tuple[str, int], Lineage] = {}
        self._of_trial: dict[int, tuple[str, int]] = {}
        self._of_source: dict[str, tuple[str, int]] = {}

    def add(self, outcome: Outcome) -> None:
        """Adds the final outcome of a settled trial.

        A correct trial belongs to the island, in its own tier, of the kernel that its first parent
        descends from; without one it founds an island. A failed one counts for the island of its
        first parent.
        """
        before = self._origin(outcome)
        founder = before[1] if before else outcome.trial
        if score_of(outcome) is not None:
            key = outcome.tier, founder
        elif before:
            key = before
        else:
            return
        self._of_trial[outcome.trial] = key
        if outcome.source_digest:
            self._of_source.setdefault(outcome.source_digest, key)
        self._islands.setdefault(key, Lineage(*key)).add(outcome)

    def islands(self) -> list[Lineage]:
        """The ISLANDS best of each tier, by tier and score of their best trial."""
        found = sorted(
            (island for island in self._islands.values() if island.best),
            key=lambda island: (island.tier, island.best[0]),
        )
        tiers = [island.tier for island in found]
        return [
            island
            for number, island in enumerate(found)
            if number - tiers.index(island.tier) < ISLANDS
        ]

    def _origin(self, outcome: Outcome) -> tuple[str, int] | None:
        """The island of an earlier trial with its source, else of its first parent."""
        if outcome.source_digest in self._of_source:
            return self._of_source[outcome.source_digest]
        return self._of_trial.get(outcome.parents[0]) if outcome.parents else None


def score_of(outcome: Outcome) -> float | None:
    """The score of a correct trial; None of a failed one."""
    if outcome.status is not Status.correct or outcome.score is None:
        return None
    return outcome.score.value if math.isfinite(outcome.score.value) else None
