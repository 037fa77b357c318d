"""Counts over settled trials."""

from __future__ import annotations

from evoengine.records import Outcome, Status


class Summary:
    """How many trials ended in each status; a fold, like the population."""

    def __init__(self) -> None:
        self._counts: dict[Status, int] = {}

    def tell(self, outcome: Outcome, verified: Outcome | None = None) -> None:
        """Counts one settled trial."""
        status = outcome.after(verified).status
        self._counts[status] = self._counts.get(status, 0) + 1

    @property
    def counts(self) -> dict[Status, int]:
        """The statuses that occurred, best first."""
        return {
            status: self._counts[status] for status in reversed(Status) if status in self._counts
        }

    @property
    def settled(self) -> int:
        """All trials counted."""
        return sum(self._counts.values())
