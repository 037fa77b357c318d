"""The samples of a candidate and of the baseline beside it, group by group."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evoengine.evaluate.worker.candidate_failures import Cheated, VoidTiming
from evoengine.evaluate.worker.cuda.examination import Examined
from evoengine.records import Samples
from evoengine.statistics import ENOUGH_GROUPS, group_interval, median, paired_ratios

NARROW = 0.008  # the ratio is known well when its interval is within +-0.8 %
# Stamps lie a little outside of events; by how much more may they on the candidate's side, whose
# kernels may leave multiprocessors divided differently between L1 and shared memory.
GAP_US, GAP_SHARE = 3.0, 0.02
# The host waits some 50 us longer than the events say; a busy host more, but not each time, and one
# whose GPU others use as well waits longer for the baseline, too, by a slice of time of 2 ms, say.
# No more than this is allowed for: beyond it a time is nobody's.
HOST_GAP_US, HOST_GAP_SHARE = 200.0, 0.5
# A ratio is surely above a limit if so many standard errors are between them. Few samples say
# little about their spread, and nothing about the next groups: it is at least this share.
SURE_ERRORS, LEAST_ERROR = 3.0, 0.007


class ClockGaps:
    """By how much the clocks of a candidate's replays are apart, and those of the baseline's."""

    def __init__(self) -> None:
        self._ours: list[float] = []
        self._theirs: list[float] = []
        self._our_host: list[float] = []
        self._their_host: list[float] = []

    def add(
        self, ours: Sequence[float], theirs: Sequence[float], our_host: float, their_host: float
    ) -> None:
        """Adds one replay of each side, as Examined has them."""
        self._ours += ours
        self._theirs += theirs
        self._our_host.append(our_host)
        self._their_host.append(their_host)

    def refuse_forged(self, replay_us: float) -> None:
        """Raises Cheated where the candidate's two clocks are further apart than the baseline's, or
        where the host always waits longer for it than both say, and than for the baseline;
        VoidTiming where the host waits as long for the baseline. `replay_us` is the time of a
        replay.
        """
        apart = abs(median(self._ours) - median(self._theirs))
        if apart > max(GAP_US, GAP_SHARE * replay_us):
            raise Cheated(
                f"two clocks disagree about the time of its replays by {apart:.2g} us more than"
                " about the baseline's"
            )
        allowed = HOST_GAP_US + HOST_GAP_SHARE * replay_us
        ours, theirs = min(self._our_host), min(self._their_host)
        longer = ours - min(HOST_GAP_US, theirs)
        if ours - theirs > allowed:
            raise Cheated(
                f"its replays take at least {longer:.3g} us more on the host's clock than the"
                " baseline's"
            )
        if longer > allowed:
            raise VoidTiming(
                f"the host waits at least {theirs:.3g} us longer than the GPU's clocks say, for the"
                " baseline's replays as well: something else uses the GPU"
            )


class TimedPairs:
    """Samples in microseconds a call, each pair on the same inputs."""

    def __init__(self) -> None:
        self.groups = 0  # begun so far
        self._sittings = 1  # in which they were begun
        self._ours: list[float] = []
        self._theirs: list[float] = []
        self._counts: list[int] = []
        self._groups: list[int] = []
        self._gaps = ClockGaps()

    def begin_sitting(self) -> None:
        """The groups that follow are taken some time after those before."""
        if self.groups:
            self._sittings += 1

    def begin_group(self) -> None:
        """The samples that follow are of a new group."""
        self.groups += 1

    def add(
        self,
        examined: Examined,
        theirs: Sequence[float],
        their_gaps: Sequence[float],
        their_host_gap: float,
        calls: int,
    ) -> None:
        """Adds one replay of each side, whose samples have `calls` calls."""
        self._ours += [time_us / calls for time_us in examined.times_us]
        self._theirs += [time_us / calls for time_us in theirs]
        self._counts += [calls] * len(examined.times_us)
        self._groups += [self.groups - 1] * len(examined.times_us)
        self._gaps.add(examined.gaps_us, their_gaps, examined.host_gap_us, their_host_gap)

    @property
    def are_narrow(self) -> bool:
        """Whether the ratio is known well enough."""
        if self.groups < ENOUGH_GROUPS:
            return False
        # more groups narrow nothing else
        interval = group_interval(self._ratios, self._groups)
        return interval.high - interval.low <= 2 * NARROW * interval.value

    @property
    def surely_above(self) -> float:
        """The logarithm of a ratio that the true one is surely above."""
        logs = [math.log(ratio) for ratio in self._ratios]
        mean = sum(logs) / len(logs)
        variance = sum((log - mean) ** 2 for log in logs) / max(1, len(logs) - 1)
        return mean - SURE_ERRORS * max(LEAST_ERROR, math.sqrt(variance / len(logs)))

    def refuse_forged(self) -> None:
        """As ClockGaps.refuse_forged."""
        self._gaps.refuse_forged(median(self._ours) * median(self._counts))

    def samples(self) -> Samples:
        """All samples as a record."""
        return Samples(
            candidate_calls=max(self._counts, default=0),
            baseline_calls=max(self._counts, default=0),
            candidate_us=tuple(self._ours),
            baseline_us=tuple(self._theirs),
            calls=tuple(self._counts),
            groups=tuple(self._groups),
            sittings=self._sittings,
        )

    @property
    def _ratios(self) -> list[float]:
        return paired_ratios(self._ours, self._theirs)
