"""What the search did with a correct trial, in a few words."""

from __future__ import annotations

from evoengine.report.rows import TrialRow

STOPPED_EARLY = "stopped early: it cannot take a place"


def search_remark(row: TrialRow) -> str:
    """Why a correct trial has a coarse figure, or no place; "" if there is nothing to say."""
    if row.is_coarse:
        return STOPPED_EARLY
    if row.lost_to is not None and row.place is None:
        return f"did not beat trial {row.lost_to} in a race"
    return ""
