"""A baseline in the candidate's place, timed by the paired timing of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from evoengine.evaluate.worker.cuda.baseline_stand_in import BaselineStandIn
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS, CallRange
from evoengine.evaluate.worker.cuda.paired_timing import SCORED, PairedTiming
from evoengine.records import CaseTiming
from evoengine.statistics import ratio_interval

POOL: Any = tuple(range(16))


class GivenReplays:
    """Replays of a baseline of 10 us a call, with noise."""

    def __init__(self, seed: int) -> None:
        self.luck = Random(seed)  # noqa: S311 - not secret
        self.given: list[tuple[int, ...]] = []
        self.gaps_us: tuple[float, ...] = ()
        self.host_gap_us = 50.0

    def prepare(self, calls: int, cold: bool) -> None:
        """Has no buffers to place anew."""

    def replay(self, sets: Sequence[int], cold: bool) -> tuple[float, ...]:
        self.given.append(tuple(sets))
        us = [10 * (1 + self.luck.gauss(0, 0.005)) for _ in sets]
        times = tuple(us) if cold else (sum(us),)
        self.gaps_us = (1.5,) * len(times)
        return times


@pytest.mark.parametrize("cold", [False, True])
def test_a_baseline_in_the_candidates_place_takes_its_own_time(cold: bool) -> None:
    ours, theirs = GivenReplays(1), GivenReplays(2)
    stand_in: Any = BaselineStandIn(ours)  # type: ignore[arg-type]  # of the same methods
    pair = PairedTiming(stand_in, theirs, POOL, CallRange(3, 7), cold)  # type: ignore[arg-type]
    samples = pair.run(5.0, SCORED, lambda: None)
    assert not pair.wrong
    timing = CaseTiming(case="rows", baseline="itself", hot=samples, cold=samples)
    assert ratio_interval(timing, cold).value == pytest.approx(1, abs=0.01)
    assert set(ours.given) & set(theirs.given), "both sides get the same sets"


def test_the_sets_of_the_warm_up_are_not_timed() -> None:
    replays = GivenReplays(1)
    examined = BaselineStandIn(replays).replay(POOL[: WARM_UP_CALLS + 2], True)  # type: ignore[arg-type]
    assert replays.given == [POOL[WARM_UP_CALLS : WARM_UP_CALLS + 2]]
    assert len(examined.times_us) == len(examined.gaps_us) == 2 and examined.wrong == ()
