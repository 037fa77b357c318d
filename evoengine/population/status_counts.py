"""The number of settled trials in each status."""

from __future__ import annotations

from evoengine.records import Outcome, Status, best_first


class StatusCounts:
    """The number of settled trials that ended in each status."""

    def __init__(self) -> None:
        self._counts: dict[Status, int] = {}

    def add(self, outcome: Outcome, verified: Outcome | None = None) -> None:
        """Counts one settled trial."""
        status = outcome.after(verified).status
        self._counts[status] = self._counts.get(status, 0) + 1

    @property
    def by_status(self) -> dict[Status, int]:
        """The counts of the statuses that occurred, best status first."""
        return best_first(self._counts)

    @property
    def settled(self) -> int:
        """The number of all trials counted."""
        return sum(self._counts.values())
