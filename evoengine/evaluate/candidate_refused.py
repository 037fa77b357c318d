"""The exception for a candidate that is refused before it reaches a device."""

from __future__ import annotations

from evoengine.records import Status, Verdict

DETAIL_BYTES = 4096


class CandidateRefused(Exception):  # noqa: N818 - a finding about a candidate, not a fault of ours
    """The candidate is refused; `verdict` says why."""

    def __init__(self, status: Status, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.verdict = Verdict(
            status=status, reason=reason.strip().splitlines()[0], detail=detail[:DETAIL_BYTES]
        )
