"""Times a candidate paired with a baseline on one case, replay by replay.

Both sides take the same number of calls on the same input sets, one after the other; every replay
of the candidate is examined. The number of replays is drawn, so no clock tells which is the last.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence

from evoengine.evaluate.worker.candidate_failures import Cheated, VoidTiming
from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS, CallRange, draw_cold
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.examination import Examination
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.records import InputSetCheck, Samples
from evoengine.statistics import median, median_interval

LEAST_REPLAYS = 10  # of hot ones, and of cold ones
MORE_REPLAYS = 6  # up to as many more, drawn
BRIEF_REPLAYS = 5  # of a case that is not part of the objective
MOST_REPLAYS = 80
MORE_AT_MOST = 40
ENOUGH_FOR_INTERVAL = 20
NARROW = 0.004  # stop when the interval of the median ratio is within +-0.4 %
ALONE_REPLAYS = 7
# The medians of a baseline beside a candidate and alone may differ by so much. Its medians over
# the verdicts of one run spread by 3 % (10th to 90th percentile, H200).
SAME_TIME = 0.08
ATTEMPTS = 3
# Replays about which two clocks disagree, because the GPU was given to another process in between;
# more of them are no accident.
MOST_DISAGREEMENTS = 5


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

    def run(self, budget_s: float, briefly: bool, alive: Callable[[], None]) -> Samples:
        """Paired samples in microseconds a call; raises CandidateFailure.

        Sampling ends early at the first wrong output, which `wrong` then holds. With `briefly`, for
        a case whose time does not count, it takes as few as are shown. `alive` is called before
        every replay.
        """
        ratios = []
        for _ in range(ATTEMPTS):
            samples = self._take(budget_s, briefly, alive)
            if self.wrong or briefly:
                return samples
            ratios.append(self._beside_to_alone(samples))
            if 1 / (1 + SAME_TIME) <= ratios[-1] <= 1 + SAME_TIME:
                return samples
        raise VoidTiming(
            "the baseline takes another time beside it than alone: "
            + ", ".join(f"{ratio:.2f}x" for ratio in ratios)
        )

    def _take(self, budget_s: float, briefly: bool, alive: Callable[[], None]) -> Samples:
        least = BRIEF_REPLAYS if briefly else LEAST_REPLAYS
        least += secrets.randbelow(MORE_REPLAYS + 1)
        most = least if briefly else MOST_REPLAYS + secrets.randbelow(MORE_AT_MOST + 1)
        deadline = time.monotonic() + budget_s * (0.7 + secrets.randbelow(600) / 1000)
        ours, theirs, counts = list[float](), list[float](), list[int]()
        replays = disagreements = 0
        while replays < least or (
            replays < most and time.monotonic() < deadline and not _is_narrow(ours, theirs)
        ):
            alive()
            count = draw_cold() if self._cold else self._calls.draw()
            mine, other = self._pair(count)
            if self.wrong:
                break
            if not mine:
                disagreements += 1
                if disagreements > MOST_DISAGREEMENTS:
                    raise Cheated("two clocks disagree about the time of its replays")
                continue
            replays += 1
            per_sample = 1 if self._cold else count
            ours += [time_us / per_sample for time_us in mine]
            theirs += [time_us / per_sample for time_us in other]
            counts += [per_sample] * len(mine)
        return Samples(
            candidate_calls=max(counts, default=0),
            baseline_calls=max(counts, default=0),
            candidate_us=tuple(ours),
            baseline_us=tuple(theirs),
            calls=tuple(counts),
        )

    def _pair(self, count: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The times of one replay of each side, in a random order."""
        sets = drawn(self._sets, WARM_UP_CALLS + count)
        theirs: tuple[float, ...] = ()
        first = secrets.randbelow(2)
        if first:
            theirs = self._baseline.replay(sets[WARM_UP_CALLS:], self._cold)
        examined = self._examination.replay(sets, self._cold)
        self.wrong = examined.wrong
        if not first:
            theirs = self._baseline.replay(sets[WARM_UP_CALLS:], self._cold)
        return examined.times_us, theirs

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


def _is_narrow(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    if len(ours) < ENOUGH_FOR_INTERVAL:
        return False
    interval = median_interval([b / a for a, b in zip(ours, theirs, strict=True)])
    return interval.high - interval.low <= 2 * NARROW * interval.value
