"""The verdicts behind an elite: the one that gave it its place, and the one of the run's end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evoengine.records import Interval, Outcome, Status, Verdict, numbers_only


@dataclass(frozen=True)
class EliteEvidence:
    """What the search saw of an elite, and what was measured once more at the end of the run.

    The best of many noisy measurements is better than what it measures. So the figure of an elite
    is that of `final`, which had no part in choosing it.
    """

    selected: Verdict | None = None  # the verification
    final: Verdict | None = None
    awaits_final: bool = False  # whether the end of the run will measure it, and has not yet

    @property
    def shown(self) -> Verdict | None:
        """The verdict whose figures are the elite's."""
        return self.final or self.selected

    def figures(self, outcome: Outcome) -> tuple[Interval | None, Interval | None]:
        """Score and latency of the elite that `outcome` made; None if it was not correct at the
        end.
        """
        if self.final is None:
            return outcome.score, outcome.latency_us
        if self.final.status is not Status.correct:
            return None, None
        return numbers_only(self.final.score), numbers_only(self.final.latency_us)


NO_EVIDENCE = EliteEvidence()
EvidenceLookup = Callable[[int], EliteEvidence]  # of the trial of an elite
