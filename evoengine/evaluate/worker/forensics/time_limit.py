"""How long an analysis may take: seconds of the processor, and seconds of the clock as a cap."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

# A machine that other processes load gives an analysis a part of its time; one that gets less than
# a sixth of a core is ended, so that a verdict does not wait for it without end.
CLOCK_FACTOR = 6.0
# The processor's clock is read no more often: it is a call into the system, which can take as long
# as a step of a small reference, of which thousands are tried.
READ_EVERY_S = 0.01


@dataclass
class TimeLimit:
    """Two ends: of the processor's time that all threads of the process take, and of the clock."""

    processor_end_s: float  # of `processor_clock`
    clock_end_s: float  # of `clock`
    clock: Callable[[], float] = time.monotonic
    processor_clock: Callable[[], float] = time.process_time
    _read_s: float = -math.inf  # when the processor's clock was read last, of `clock`
    _was_over: bool = False

    @property
    def is_over(self) -> bool:
        """Whether one of the ends is reached."""
        now = self.clock()
        if not self._was_over and now >= self._read_s + READ_EVERY_S:
            self._read_s = now
            self._was_over = self.processor_clock() > self.processor_end_s
        return self._was_over or now > self.clock_end_s


def time_limit(
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    processor_clock: Callable[[], float] = time.process_time,
) -> TimeLimit:
    """From now on `seconds` of the processor, and CLOCK_FACTOR times as many of the clock."""
    return TimeLimit(
        processor_clock() + seconds, clock() + CLOCK_FACTOR * seconds, clock, processor_clock
    )
