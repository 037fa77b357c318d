"""What a search did with a correct trial that the trial's figures do not tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evoengine.protocols import PastRace
from evoengine.records import RaceResult


@dataclass(frozen=True)
class SearchMarks:
    """The marks of one trial, as in TrialRow."""

    is_coarse: bool = False
    lost_to: int | None = None


NO_MARKS = SearchMarks()
MarksLookup = Callable[[int], SearchMarks]  # of a trial


def last_unbeaten(races: Sequence[PastRace]) -> int | None:
    """The trial that was not beaten in the last of `races`; None if it was, or without races."""
    return races[-1].holder if races and races[-1].result is not RaceResult.won else None
