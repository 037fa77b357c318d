"""Times a candidate paired with a baseline on one case, replay by replay.

Both sides take the same number of calls on the same input sets, one after the other; every replay
of the candidate is examined. The number of replays is drawn, so no clock tells which is the last.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evoengine.evaluate.worker.candidate_failures import Cheated, VoidTiming
from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS, CallRange, draw_cold
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.examination import Examination, Examined
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.records import InputSetCheck, Samples
from evoengine.statistics import median, median_interval

MOST_REPLAYS = 80
MORE_AT_MOST = 40
ENOUGH_FOR_INTERVAL = 20
NARROW = 0.004  # stop when the interval of the median ratio is within +-0.4 %
ALONE_REPLAYS = 4
# The medians of a baseline beside a candidate and alone may differ by so much. Its medians over
# the verdicts of one run spread by 3 % (10th to 90th percentile, H200).
SAME_TIME = 0.08
ATTEMPTS = 3
# Replays about which two clocks disagree, because the GPU was given to another process in between;
# more of them are no accident.
MOST_DISAGREEMENTS = 5
# Stamps lie a little outside of events; by how much more may they on the candidate's side, whose
# kernels may leave multiprocessors divided differently between L1 and shared memory.
GAP_US, GAP_SHARE = 3.0, 0.02
# The host waits some 50 us longer than the events say; a busy host more, but not each time.
HOST_GAP_US, HOST_GAP_SHARE = 200.0, 0.5
# Of the replays of a hot measurement, one in so many has fewer calls and is compared, not timed.
UNTIMED_ONE_IN = 6


@dataclass(frozen=True)
class Effort:
    """How many replays a measurement takes."""

    least: int
    more: int  # up to as many more, drawn
    untimed: int  # of a hot measurement, at least, besides those: with fewer calls
    until_narrow: bool = False  # goes on until the ratio is known well, or the budget is spent
    confirmed: bool = True  # the baseline's time is compared with its time alone


SCORED = Effort(least=10, more=6, untimed=3, until_narrow=True)
SHOWN = Effort(least=10, more=4, untimed=2)  # cold times of a score that is hot, and the reverse
# Of a case that is not part of the objective. With the replays of its check, a call that idles now
# and then is found as surely as in the others.
BRIEF = Effort(least=4, more=3, untimed=1, confirmed=False)


class PairedTiming:
    """One measurement of one kind: hot, or cold."""

    def __init__(
        self,
        examination: Examination,
        baseline: BaselineReplays,
        sets: Sequence[PoolSet],
        calls: CallRange,
        cold: bool,
    ) -> None:
        self._examination = examination
        self._baseline = baseline
        self._sets = sets
        self._calls = calls
        self._cold = cold
        self.wrong: tuple[InputSetCheck, ...] = ()

    def run(self, budget_s: float, effort: Effort, alive: Callable[[], None]) -> Samples:
        """Paired samples in microseconds a call; raises CandidateFailure.

        Sampling ends early at the first wrong output, which `wrong` then holds. `alive` is called
        before every replay.
        """
        ratios = []
        for _ in range(ATTEMPTS):
            samples = self._take(budget_s, effort, alive)
            if self.wrong or not effort.confirmed:
                return samples
            ratios.append(self._beside_to_alone(samples))
            if 1 / (1 + SAME_TIME) <= ratios[-1] <= 1 + SAME_TIME:
                return samples
        raise VoidTiming(
            "the baseline takes another time beside it than alone: "
            + ", ".join(f"{ratio:.2f}x" for ratio in ratios)
        )

    def _take(self, budget_s: float, effort: Effort, alive: Callable[[], None]) -> Samples:
        least = effort.least + secrets.randbelow(effort.more + 1)
        most = MOST_REPLAYS + secrets.randbelow(MORE_AT_MOST + 1) if effort.until_narrow else least
        deadline = time.monotonic() + budget_s * (0.7 + secrets.randbelow(600) / 1000)
        pairs = _Pairs()
        untimed = set(drawn(range(least), effort.untimed))
        replays = disagreements = 0
        while replays < least or (
            replays < most and time.monotonic() < deadline and not pairs.are_narrow
        ):
            alive()
            if not self._cold and (replays in untimed or secrets.randbelow(UNTIMED_ONE_IN) == 0):
                untimed.discard(replays)
                self._examine(self._calls.draw_fewer())
            elif self._add_pair(pairs):
                replays += 1
            else:
                disagreements += 1
                if disagreements > MOST_DISAGREEMENTS:
                    raise Cheated("two clocks disagree about the time of its replays")
            if self.wrong:
                return pairs.samples()
        pairs.refuse_forged()
        return pairs.samples()

    def _add_pair(self, pairs: _Pairs) -> bool:
        """Adds one replay of each side, in a random order; false if two clocks disagree about the
        candidate's.
        """
        count = draw_cold() if self._cold else self._calls.draw()
        sets = drawn(self._sets, WARM_UP_CALLS + count)
        theirs: tuple[float, ...] = ()
        first = secrets.randbelow(2)
        if first:
            theirs = self._baseline.replay(sets[WARM_UP_CALLS:], self._cold)
        examined = self._examination.replay(sets, self._cold)
        self.wrong = examined.wrong
        if self.wrong or not examined.times_us:
            return bool(self.wrong)
        if not first:
            theirs = self._baseline.replay(sets[WARM_UP_CALLS:], self._cold)
        pairs.add(examined, theirs, self._baseline.gaps_us, 1 if self._cold else count)
        return True

    def _examine(self, count: int) -> None:
        """One replay that is compared and not timed."""
        sets = drawn(self._sets, WARM_UP_CALLS + count)
        self.wrong = self._examination.replay(sets, self._cold).wrong

    def _beside_to_alone(self, samples: Samples) -> float:
        """The baseline's time beside the candidate over its time alone, for equal calls."""
        ratios = []
        for _ in range(ALONE_REPLAYS):
            count = draw_cold() if self._cold else secrets.choice(samples.calls)
            times = self._baseline.replay(drawn(self._sets, count), self._cold)
            per_sample = 1 if self._cold else count
            beside = [
                time_us
                for time_us, calls in zip(samples.baseline_us, samples.calls, strict=True)
                if calls == per_sample
            ]
            ratios += [median(beside) * per_sample / time_us for time_us in times]
        return median(ratios)


class _Pairs:
    """The samples of both sides so far, in microseconds a call."""

    def __init__(self) -> None:
        self._ours: list[float] = []
        self._theirs: list[float] = []
        self._counts: list[int] = []
        self._our_gaps: list[float] = []
        self._their_gaps: list[float] = []
        self._host_gaps: list[float] = []

    def add(
        self,
        examined: Examined,
        theirs: Sequence[float],
        their_gaps: Sequence[float],
        calls: int,
    ) -> None:
        """Adds one replay of each side, whose samples have `calls` calls."""
        self._ours += [time_us / calls for time_us in examined.times_us]
        self._theirs += [time_us / calls for time_us in theirs]
        self._counts += [calls] * len(examined.times_us)
        self._our_gaps += examined.gaps_us
        self._their_gaps += their_gaps
        self._host_gaps.append(examined.host_gap_us)

    @property
    def are_narrow(self) -> bool:
        """Whether the ratio is known well enough."""
        if len(self._ours) < ENOUGH_FOR_INTERVAL:
            return False
        pairs = zip(self._ours, self._theirs, strict=True)
        interval = median_interval([theirs / ours for ours, theirs in pairs])
        return interval.high - interval.low <= 2 * NARROW * interval.value

    def refuse_forged(self) -> None:
        """Raises Cheated where the candidate's two clocks are further apart than the baseline's, or
        where the host always waits longer than both say.
        """
        apart = abs(median(self._our_gaps) - median(self._their_gaps))
        replay_us = median(self._ours) * median(self._counts)
        if apart > max(GAP_US, GAP_SHARE * replay_us):
            raise Cheated(
                f"two clocks disagree about the time of its replays by {apart:.2g} us more than"
                " about the baseline's"
            )
        if min(self._host_gaps) > HOST_GAP_US + HOST_GAP_SHARE * replay_us:
            raise Cheated(
                f"its replays take at least {min(self._host_gaps):.3g} us more on the host's clock"
            )

    def samples(self) -> Samples:
        """All samples as a record."""
        return Samples(
            candidate_calls=max(self._counts, default=0),
            baseline_calls=max(self._counts, default=0),
            candidate_us=tuple(self._ours),
            baseline_us=tuple(self._theirs),
            calls=tuple(self._counts),
        )
