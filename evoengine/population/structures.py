"""The promising structures of a run: sources that tuning might bring to a place."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable

from evoengine.records import Elite, Outcome, Status

# A source is promising if its best time is at most this many times that of the last elite of its
# tier: tuning made kernels with a good first guess 1.02 to 1.2 times as fast, and guesses are worse
# than that now and then.
PROMISING_FACTOR = 1.5
MOST_STRUCTURES = 8  # of a tier; a budget of some hundred trials tunes no more of them


class Structures:
    """The best correct trial of each source: a fold over settled trials in the order of their
    numbers. A configuration that fails changes nothing for its source.
    """

    def __init__(self) -> None:
        self._tried: dict[str, list[Outcome]] = {}  # by source digest
        self._best: dict[str, tuple[float, int]] = {}  # source digest -> score and trial
        self._ranked: dict[str, list[tuple[float, int]]] = {}  # tier -> `_best`, in order

    def add(self, outcome: Outcome) -> None:
        """Adds the final outcome of a settled trial."""
        source, score = outcome.source_digest, outcome.score
        if not source:
            return
        self._tried.setdefault(source, []).append(outcome)
        if outcome.status is not Status.correct or score is None or not math.isfinite(score.value):
            return
        mine, before = (score.value, outcome.trial), self._best.get(source)
        if before is not None and before <= mine:
            return
        ranked = self._ranked.setdefault(outcome.tier, [])
        if before is not None:
            ranked.remove(before)
        bisect.insort(ranked, mine)
        self._best[source] = mine

    def promising(self, elites: Iterable[Elite]) -> list[int]:
        """The best trial of each promising source, by tier and score; `elites` in the order of
        their places.
        """
        bars = {elite.tier: elite.outcome.score for elite in elites}
        return [
            trial
            for tier, last in sorted(bars.items())
            for score, trial in self._ranked.get(tier, [])[:MOST_STRUCTURES]
            if last is not None and score <= PROMISING_FACTOR * last.value
        ]

    def tried(self, source_digest: str, before: int) -> tuple[Outcome, ...]:
        """The outcomes of a source's trials before trial number `before`, failures included."""
        found = self._tried.get(source_digest, [])
        return tuple(outcome for outcome in found if outcome.trial < before)
