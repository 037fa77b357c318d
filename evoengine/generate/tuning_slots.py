"""Which trials tune: it follows from a trial's number and the share alone, so it is the same live
and on resume.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class TuningSlots:
    """The tuning trials of a run with `first` starting kernels: `share` of those after them, evenly
    spread.
    """

    first: int
    share: float

    def before(self, trial: int) -> int:
        """How many of the trials before `trial` tune."""
        # rounded, because 0.29 * 100 is 28.999999999999996
        return math.floor(round(max(trial - self.first, 0) * self.share, 6))

    def asking_before(self, trial: int) -> int:
        """How many of the trials before `trial` ask, if every tuning trial finds what to tune."""
        return max(trial - self.first, 0) - self.before(trial)

    def has(self, trial: int) -> bool:
        """Whether `trial` tunes."""
        return self.before(trial + 1) > self.before(trial)
