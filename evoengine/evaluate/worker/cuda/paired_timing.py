"""Times a candidate paired with a baseline on one case, replay by replay.

Both sides take the same number of calls on the same input sets, one after the other; every replay
of the candidate is examined. For each replay both sides have new buffers and are captured again,
and the candidate's code is loaded anew. Replays come in groups, whose medians show how much the
ratio wanders. Their number is drawn, so no clock tells which is the last.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from evoengine.evaluate.worker.candidate_failures import (
    CandidateFailure,
    Cheated,
    VoidTiming,
)
from evoengine.evaluate.worker.cuda.baseline_replays import BaselineReplays
from evoengine.evaluate.worker.cuda.baseline_turns import BaselineTurns
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS, CallRange, draw_cold
from evoengine.evaluate.worker.cuda.dealing import drawn
from evoengine.evaluate.worker.cuda.examination import Examination
from evoengine.evaluate.worker.cuda.input_pool import PoolSet
from evoengine.evaluate.worker.cuda.timed_pairs import TimedPairs
from evoengine.records import InputSetCheck, Samples
from evoengine.statistics import median

ALONE_REPLAYS = 4
# The medians of a baseline beside a candidate and alone may differ by so much. Its medians over
# the verdicts of one run spread by 3 % (10th to 90th percentile, H200).
SAME_TIME = 0.08
ATTEMPTS = 3
# Replays about which two clocks disagree, because the GPU was given to another process in between;
# more of them are no accident.
MOST_DISAGREEMENTS = 5

# Lets those that wait have the GPU; returns for how many seconds.
Offer = Callable[[], float]


@dataclass(frozen=True)
class Effort:
    """How many replays a measurement takes."""

    groups: int  # at least
    most_groups: int  # until the ratio is known well, or the budget is spent
    replays: int  # of each side in a group
    more: int  # up to as many more, drawn for each group
    confirmed: bool = True  # the baseline's time is compared with its time alone

    @property
    def least(self) -> int:
        """The least number of replays of a measurement."""
        return self.groups * self.replays


SCORED = Effort(groups=6, most_groups=12, replays=2, more=2)
# The first verdict of a search: who is worth a verification.
ATTEMPTED = Effort(groups=4, most_groups=6, replays=2, more=2)
# Its verification: who may race for a place, and races decide.
SEARCHED = Effort(groups=6, most_groups=8, replays=2, more=2)
SITTING = Effort(groups=4, most_groups=4, replays=4, more=2)  # one of several, of an elite
# Whether a candidate may take a place at all; what it takes counts as the beginning of SCORED.
FIRST_LOOK = Effort(groups=2, most_groups=2, replays=2, more=2, confirmed=False)
# Cold times of a score that is hot, and the reverse.
SHOWN = Effort(groups=2, most_groups=2, replays=5, more=2)
# Of a case that is not part of the objective. With the replays of its check, a call that idles now
# and then is found as surely as in the others.
BRIEF = Effort(groups=1, most_groups=1, replays=4, more=3, confirmed=False)
# Hot times of one that is only looked at and scored by cold ones: a figure for the report, which
# decides nothing.
GLANCE = Effort(groups=1, most_groups=1, replays=1, more=1, confirmed=False)


class PairedTiming:
    """One measurement of one kind: hot, or cold."""

    def __init__(
        self,
        examination: Examination,
        baseline: BaselineReplays,
        sets: Sequence[PoolSet],
        calls: CallRange,
        cold: bool,
        pairs: TimedPairs | None = None,
        offer: Offer = lambda: 0.0,
    ) -> None:
        """`pairs` are those of a measurement that this one goes on with. `offer` is called between
        two groups.
        """
        self._examination = examination
        self._baseline = baseline
        self._sets = sets
        self._calls = calls
        self._cold = cold
        self._offer = offer
        self._disagreements = 0
        self._turns = BaselineTurns(baseline, calls, cold)
        self.pairs = pairs or TimedPairs()
        self.wrong: tuple[InputSetCheck, ...] = ()

    def run(self, budget_s: float, effort: Effort, alive: Callable[[], None]) -> Samples:
        """Paired samples in microseconds a call; raises CandidateFailure.

        Sampling ends early at the first wrong output, which `wrong` then holds. `alive` is called
        before every replay. Samples about which clocks disagree are taken anew, none of them is
        kept: a process that starts beside them can part the clocks, a candidate that forges one
        parts them every time.
        """
        failure: CandidateFailure | None = None
        ratios = list[float]()
        for _ in range(ATTEMPTS):
            self._take(budget_s, effort, alive)
            samples = self.pairs.samples()
            if self.wrong:
                return samples
            try:
                self.pairs.refuse_forged()
                if not effort.confirmed:
                    return samples
                ratios.append(self._beside_to_alone(samples))
                if 1 / (1 + SAME_TIME) <= ratios[-1] <= 1 + SAME_TIME:
                    return samples
                failure = _void(ratios)
            except (Cheated, VoidTiming) as refused:
                failure = refused
            self.pairs = TimedPairs()
        assert failure is not None
        raise failure

    def sit(self, effort: Effort, alive: Callable[[], None]) -> Samples:
        """As `run`, with the least effort beyond that of the sittings before. A void measurement
        is made again at once: then all its groups are of one sitting.
        """
        self.pairs.begin_sitting()
        return self.run(0.0, replace(effort, groups=self.pairs.groups + effort.groups), alive)

    def _take(self, budget_s: float, effort: Effort, alive: Callable[[], None]) -> None:
        deadline = time.monotonic() + budget_s * (0.7 + secrets.randbelow(600) / 1000)
        pairs = self.pairs
        while pairs.groups < effort.groups or (
            pairs.groups < effort.most_groups
            and time.monotonic() < deadline
            and not pairs.are_narrow
        ):
            if pairs.groups:
                deadline += self._offer()
            self._take_group(effort, alive)
            if self.wrong:
                return

    def _take_group(self, effort: Effort, alive: Callable[[], None]) -> None:
        """The replays of one group; among those of a hot one, one with fewer calls, which is
        compared and not timed.
        """
        self.pairs.begin_group()
        timed = effort.replays + secrets.randbelow(effort.more + 1)
        untimed_at = None if self._cold else secrets.randbelow(timed)
        while timed:
            alive()
            if untimed_at == timed - 1:
                untimed_at = None
                self._examine(self._calls.draw_fewer())
            elif self._add_pair():
                timed -= 1
            else:
                self._disagreements += 1
                if self._disagreements > MOST_DISAGREEMENTS:
                    raise Cheated("two clocks disagree about the time of its replays")
            if self.wrong:
                return

    def _add_pair(self) -> bool:
        """Adds one replay of each side, in a random order; false if two clocks disagree about the
        candidate's.
        """
        turns, count = self._turns, self._turns.count
        sets = drawn(self._sets, WARM_UP_CALLS + count)
        theirs: tuple[float, ...] = ()
        first = secrets.randbelow(2)
        if first:
            theirs = turns.take(sets[WARM_UP_CALLS:])
        examined = self._examination.replay(sets, self._cold, turns.prepare)
        self.wrong = examined.wrong
        if self.wrong or not examined.times_us:
            return bool(self.wrong)
        if not first:
            theirs = turns.take(sets[WARM_UP_CALLS:])
        calls = 1 if self._cold else count
        self.pairs.add(examined, theirs, turns.gaps_us, turns.host_gap_us, calls)
        return True

    def _examine(self, count: int) -> None:
        """One replay that is compared and not timed."""
        sets = drawn(self._sets, WARM_UP_CALLS + count)
        self.wrong = self._examination.replay(sets, self._cold, self._turns.prepare).wrong

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


def _void(ratios: Sequence[float]) -> VoidTiming:
    told = ", ".join(f"{ratio:.2f}x" for ratio in ratios)
    return VoidTiming(f"the baseline takes another time beside it than alone: {told}")
