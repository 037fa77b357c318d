"""The rules of paired timing, with replays whose times a test gives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from evoengine.evaluate.worker.candidate_failures import Cheated, VoidTiming
from evoengine.evaluate.worker.cuda import paired_timing
from evoengine.evaluate.worker.cuda.call_counts import (
    MOST_COLD_CALLS,
    WARM_UP_CALLS,
    CallRange,
)
from evoengine.evaluate.worker.cuda.examination import Examined
from evoengine.evaluate.worker.cuda.paired_timing import (
    ALONE_REPLAYS,
    ATTEMPTED,
    ATTEMPTS,
    BRIEF,
    FIRST_LOOK,
    GLANCE,
    MOST_DISAGREEMENTS,
    SCORED,
    SEARCHED,
    SHOWN,
    SITTING,
    Effort,
    PairedTiming,
)
from evoengine.records import Samples

CALLS = CallRange(3, 7)
POOL: Any = tuple(range(16))
WRONG: Any = SimpleNamespace(ok=False)


class FakeSides:
    """A candidate of 10 us a call and a baseline of 20 us, and the order in which they ran."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, tuple[int, ...], bool]] = []
        self.candidate_us: Callable[[], float] = lambda: 10.0
        self.baseline_us: Callable[[], float] = lambda: 20.0
        self.agrees: Callable[[], bool] = lambda: True
        self.alone_us: float | None = None  # of the baseline; None: as beside the candidate
        self.is_alone = False
        self.confirmations = 0
        self.wrong_at = -1  # the examined replay that has a wrong output
        self.examination: Any = SimpleNamespace(replay=self.examine)
        self.baseline: Any = SimpleNamespace(
            replay=self.replay, gaps_us=(1.5,), host_gap_us=50.0, prepare=self.prepare
        )
        self.prepared: tuple[int, bool] | None = None  # what no replay of the baseline has used
        self.captures: list[int] = []  # the candidate's replays before each of the baseline's
        self.is_comparing = False  # the candidate's outputs
        self.ahead = 0  # captures of the baseline meanwhile
        self.gap_us = 1.5  # between the candidate's two clocks
        self.host_gap_us: Callable[[], float] = lambda: 50.0

    def prepare(self, calls: int, cold: bool) -> None:
        if self.prepared != (calls, cold):
            self.captures.append(self.examined)
            self.ahead += self.is_comparing
            self.prepared = (calls, cold)

    def examine(
        self, sets: Sequence[int], cold: bool, meanwhile: Callable[[], None] = lambda: None
    ) -> Examined:
        self.runs.append(("candidate", tuple(sets), cold))
        self.is_comparing = True
        meanwhile()
        self.is_comparing = False
        count = len(sets) - WARM_UP_CALLS
        wrong = (WRONG,) if self.examined == self.wrong_at + 1 else ()
        times = self.times(self.candidate_us, count, cold) if self.agrees() else ()
        return Examined(times, wrong, (self.gap_us,) * len(times), self.host_gap_us())

    def replay(self, sets: Sequence[int], cold: bool) -> tuple[float, ...]:
        self.runs.append(("baseline", tuple(sets), cold))
        assert self.is_alone or self.prepared == (len(sets), cold), "no new buffers"
        self.prepared = None
        alone_us = self.alone_us if self.is_alone else None
        us = self.baseline_us if alone_us is None else lambda: alone_us
        return self.times(us, len(sets), cold)

    def times(self, us: Callable[[], float], count: int, cold: bool) -> tuple[float, ...]:
        return tuple(us() for _ in range(count)) if cold else (count * us(),)

    @property
    def examined(self) -> int:
        """The replays of the candidate so far."""
        return sum(side == "candidate" for side, _, _ in self.runs)

    @property
    def pairs(self) -> list[tuple[str, tuple[int, ...], bool]]:
        """The runs that have one of the other side on the same sets beside them."""
        found, place = [], 0
        while place + 1 < len(self.runs):
            one, other = self.runs[place : place + 2]
            sets = {one[0]: one[1], other[0]: other[1]}
            together = len(sets) == 2 and sets["candidate"][WARM_UP_CALLS:] == sets["baseline"]
            found += [one, other] if together else []
            place += 2 if together else 1
        return found

    def pair(self, cold: bool) -> PairedTiming:
        return WatchedTiming(self, self.examination, self.baseline, POOL, CALLS, cold)

    def take(self, cold: bool = False, budget_s: float = 60.0, effort: Effort = SCORED) -> Samples:
        return self.pair(cold).run(budget_s, effort, lambda: None)


class WatchedTiming(PairedTiming):
    """Says when it measures the baseline alone."""

    def __init__(self, sides: FakeSides, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sides = sides

    def _beside_to_alone(self, samples: Samples) -> float:
        self.sides.is_alone = True
        try:
            return super()._beside_to_alone(samples)
        finally:
            self.sides.is_alone = False
            self.sides.confirmations += 1


@pytest.fixture
def sides() -> FakeSides:
    return FakeSides()


@pytest.mark.parametrize("cold", [False, True])
def test_times_are_those_of_a_call_on_both_sides(sides: FakeSides, cold: bool) -> None:
    found = sides.take(cold)
    assert set(found.candidate_us) == {10.0} and set(found.baseline_us) == {20.0}
    assert len(found.candidate_us) == len(found.baseline_us) == len(found.calls)
    assert set(found.calls) <= ({1} if cold else {3, 4, 5, 6, 7})
    assert found.candidate_calls == found.baseline_calls == max(found.calls)


@pytest.mark.parametrize("cold", [False, True])
def test_both_sides_take_the_same_calls_on_the_same_sets_one_after_the_other(
    sides: FakeSides, cold: bool
) -> None:
    found = sides.take(cold)
    paired = sides.pairs
    assert len(paired) == 2 * (sides.examined if cold else len(found.candidate_us))
    first = {pair[0][0] for pair in zip(paired[::2], paired[1::2], strict=True)}
    for one, other in zip(paired[::2], paired[1::2], strict=True):
        by_side = {one[0]: one[1], other[0]: other[1]}
        assert by_side["candidate"][WARM_UP_CALLS:] == by_side["baseline"]
        assert len(set(by_side["candidate"])) == len(by_side["candidate"])
        assert one[2] == other[2] == cold
    assert first == {"candidate", "baseline"}, "which side comes first is drawn"


def test_a_cold_replay_has_one_call_or_two(sides: FakeSides) -> None:
    sides.take(cold=True)
    counts = {len(sets) - WARM_UP_CALLS for side, sets, _ in sides.runs if side == "candidate"}
    assert counts == set(range(1, MOST_COLD_CALLS + 1))


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("budget_s", [0.0, 60.0])
@pytest.mark.parametrize("effort", [SCORED, SHOWN])
def test_at_least_ten_replays_of_each_kind_are_examined_whatever_the_budget(
    sides: FakeSides, cold: bool, budget_s: float, effort: Effort
) -> None:
    sides.take(cold, budget_s, effort)
    assert 10 <= effort.least <= sides.examined


def test_a_case_that_is_not_scored_has_ten_examined_replays_as_well() -> None:
    """Those of its check among them: one hot, one cold."""
    for _ in range(20):
        sides = FakeSides()
        for cold in (False, True):
            sides.take(cold, 0.0, BRIEF)
        assert sides.examined + 2 > 10


def test_the_last_replay_is_drawn_so_no_count_tells_it() -> None:
    def count(budget_s: float, effort: Effort = SCORED) -> int:
        sides = FakeSides()
        times = itertools.cycle(range(10, 110, 7))
        sides.candidate_us = lambda: float(next(times))  # its interval never becomes narrow
        return len(sides.take(budget_s=budget_s, effort=effort).candidate_us)

    for effort in (SCORED, SEARCHED, ATTEMPTED, SHOWN, BRIEF, FIRST_LOOK, GLANCE):
        for budget_s, groups in ((0.0, effort.groups), (600.0, effort.most_groups)):
            found = [count(budget_s, effort) for _ in range(60)]
            least, more = groups * effort.replays, groups * effort.more
            assert least <= min(found) and max(found) <= least + more
            assert len(set(found)) > more / 3


def test_the_budget_is_drawn_so_no_clock_tells_the_last_replay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: next(now) / 1)  # read once a group
    monkeypatch.setattr(paired_timing, "time", clock)

    def count() -> int:
        sides = FakeSides()
        times = itertools.cycle(range(10, 110, 7))
        sides.candidate_us = lambda: float(next(times))
        sides.take(budget_s=4.0)
        return sides.examined

    found = [count() for _ in range(60)]
    # read once a group: at 40, drawn from 28 to 52, of which 12 groups reach a part
    assert len(set(found)) > 10


def test_sampling_ends_early_when_the_ratio_is_known(sides: FakeSides) -> None:
    assert len(set(sides.take().groups)) == SCORED.groups
    sides.candidate_us = lambda: (10.0, 20.0)[len(sides.captures) // 5 % 2]
    assert len(set(sides.take().groups)) == SCORED.most_groups


def test_the_baseline_is_captured_anew_for_every_sample_and_samples_say_their_group(
    sides: FakeSides,
) -> None:
    samples = sides.take()
    assert len(sides.captures) >= len(samples.candidate_us)
    assert len(set(samples.groups)) == SCORED.groups
    assert list(samples.groups) == sorted(samples.groups)


def test_the_baseline_is_captured_while_the_candidates_outputs_are_compared(
    sides: FakeSides,
) -> None:
    sides.take()
    waited = len(sides.captures) - sides.ahead
    before = ["", *(side for side, _, _ in sides.runs)]
    twice = sum(pair == ("baseline", "baseline") for pair in itertools.pairwise(before))
    assert waited <= 1 + twice, "only a turn that follows the one before it was not captured ahead"
    assert 3 * sides.ahead > len(sides.captures), "three of four, by chance fewer"


def test_a_first_look_is_the_beginning_of_the_measurement(sides: FakeSides) -> None:
    look = sides.pair(cold=False)
    seen = look.run(0.0, FIRST_LOOK, lambda: None)
    whole = WatchedTiming(sides, sides.examination, sides.baseline, POOL, CALLS, False, look.pairs)
    samples = whole.run(60.0, SCORED, lambda: None)
    assert samples.candidate_us[: len(seen.candidate_us)] == seen.candidate_us
    assert len(set(samples.groups)) == SCORED.groups


def test_sittings_take_groups_of_their_own_and_the_record_says_how_many(sides: FakeSides) -> None:
    pair = sides.pair(cold=False)
    for sitting in (1, 2, 3):
        samples = pair.sit(SITTING, lambda: None)
        assert samples.sittings == sitting
        assert len(set(samples.groups)) == sitting * SITTING.groups


def test_a_wrong_output_ends_a_sitting(sides: FakeSides) -> None:
    sides.wrong_at = 2
    pair = sides.pair(cold=False)
    pair.sit(SITTING, lambda: None)
    assert pair.wrong and sides.examined == 3


def test_others_may_have_the_gpu_between_two_groups_and_that_time_is_not_charged(
    sides: FakeSides, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, offers = [0.0], list[int]()
    monkeypatch.setattr(paired_timing, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def offer() -> float:
        offers.append(pair.pairs.groups)
        now[0] += 100.0  # far beyond the budget
        return 100.0

    ratios = itertools.cycle([5.0, 20.0])  # which no group makes narrow
    sides.candidate_us = lambda: next(ratios)
    pair = WatchedTiming(sides, sides.examination, sides.baseline, POOL, CALLS, False, None, offer)
    samples = pair.run(1.0, SCORED, lambda: None)
    assert len(set(samples.groups)) == SCORED.most_groups
    assert offers == list(range(1, SCORED.most_groups))


@pytest.mark.parametrize(("us", "limit", "above"), [(10.0, 0.4, True), (10.0, 0.49, False)])
def test_a_ratio_is_surely_above_a_limit_that_it_exceeds_by_more_than_its_spread(
    sides: FakeSides, us: float, limit: float, above: bool
) -> None:
    sides.candidate_us = lambda: us  # the baseline takes 20
    look = sides.pair(cold=False)
    look.run(0.0, FIRST_LOOK, lambda: None)
    assert (math.exp(look.pairs.surely_above) > limit) is above


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("effort", [SCORED, SHOWN, BRIEF])
@pytest.mark.parametrize("at", [0, 3])
def test_the_first_wrong_output_ends_the_measurement(
    sides: FakeSides, cold: bool, effort: Effort, at: int
) -> None:
    sides.wrong_at = at
    pair = sides.pair(cold)
    pair.run(60.0, effort, lambda: None)
    assert pair.wrong == (WRONG,)
    assert sides.examined == at + 1, "no replay of the candidate comes after it"


def test_replays_about_which_two_clocks_disagree_do_not_count(sides: FakeSides) -> None:
    agreements = itertools.chain([True, False, False, True, False], itertools.repeat(True))
    sides.agrees = lambda: next(agreements)
    found = sides.take(cold=True)
    assert sides.examined - 3 >= SCORED.least
    assert len(found.candidate_us) == len(found.baseline_us) == len(found.calls)


def test_more_disagreements_than_by_accident_are_a_cheat(sides: FakeSides) -> None:
    numbers = itertools.count()
    sides.agrees = lambda: next(numbers) % 2 == 0
    with pytest.raises(Cheated, match="two clocks disagree about the time of its replays"):
        sides.take(cold=True)
    assert sides.examined == 2 * (MOST_DISAGREEMENTS + 1)


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("alone_us", [20.0, 21.5, 18.6])
def test_a_baseline_that_takes_its_time_alone_confirms_the_measurement(
    sides: FakeSides, cold: bool, alone_us: float
) -> None:
    sides.alone_us = alone_us
    sides.take(cold)
    assert len(sides.runs) == sides.examined + len(sides.pairs) // 2 + ALONE_REPLAYS


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize("alone_us", [15.0, 30.0])
def test_a_baseline_that_takes_another_time_beside_the_candidate_voids_the_measurement(
    sides: FakeSides, cold: bool, alone_us: float
) -> None:
    sides.alone_us = alone_us
    with pytest.raises(VoidTiming, match=r"another time beside it than alone: \d\.\d\dx, .*x, .*x"):
        sides.take(cold)
    assert sides.examined >= ATTEMPTS * SCORED.least


def test_a_disturbance_that_passes_is_measured_again() -> None:
    sides = FakeSides()
    sides.alone_us = 20.0
    # the baseline is slow beside the candidate until it was first measured alone
    sides.baseline_us = lambda: 20.0 if sides.confirmations else 30.0
    found = sides.take(budget_s=0.0)
    assert set(found.baseline_us) == {20.0}


def test_a_brief_measurement_is_not_confirmed(sides: FakeSides) -> None:
    found = sides.take(effort=BRIEF)
    assert len(found.candidate_us) <= BRIEF.least + BRIEF.more
    assert len(sides.runs) == sides.examined + len(found.candidate_us)


def test_some_hot_replays_have_fewer_calls_and_no_time(sides: FakeSides) -> None:
    """Otherwise the calls before the least number could leave their work to a later one."""
    shortest = []
    for _ in range(20):
        sides.runs.clear()
        found = sides.take(budget_s=0.0)
        timed = {sets for side, sets, _ in sides.pairs if side == "candidate"}
        counts = [
            len(sets) - WARM_UP_CALLS
            for side, sets, _ in sides.runs
            if side == "candidate" and sets not in timed
        ]
        assert len(counts) == sides.examined - len(found.candidate_us)
        assert len(counts) == len(set(found.groups)) == SCORED.groups, "one of each capture"
        shortest.append(min(counts))
        assert max(counts) < CALLS.least
    assert min(shortest) == 1


@pytest.mark.parametrize("cold", [False, True])
def test_events_that_say_a_little_less_than_the_stamps_are_a_cheat(
    sides: FakeSides, cold: bool
) -> None:
    """The baseline's clocks are 1.5 us apart; each sample alone would pass."""
    sides.gap_us = 9.5
    with pytest.raises(Cheated, match="8 us more than about the baseline's"):
        sides.take(cold)
    assert sides.examined >= ATTEMPTS * SCORED.least


@pytest.mark.parametrize("effort", [SCORED, BRIEF])
def test_clocks_that_a_disturbance_parted_for_a_while_are_read_anew_and_nothing_of_it_is_kept(
    sides: FakeSides, effort: Effort
) -> None:
    timing = sides.pair(cold=False)
    first = timing.pairs

    def examine(sets: Sequence[int], cold: bool, meanwhile: Callable[[], None]) -> Examined:
        is_disturbed = timing.pairs is first
        sides.gap_us = 9.5 if is_disturbed else 1.5
        sides.candidate_us = lambda: 5.0 if is_disturbed else 10.0
        return sides.examine(sets, cold, meanwhile)

    sides.examination.replay = examine
    assert set(timing.run(0.0, effort, lambda: None).candidate_us) == {10.0}


def test_a_time_that_the_host_never_sees_is_a_cheat_and_a_busy_host_is_none(
    sides: FakeSides,
) -> None:
    sides.host_gap_us = lambda: 900.0
    with pytest.raises(Cheated, match="at least 850 us more on the host's clock"):
        sides.take()
    waits = itertools.cycle([5000.0, 900.0, 60.0])
    sides.host_gap_us = lambda: next(waits)
    assert sides.take().candidate_us


def test_a_gpu_that_others_use_makes_the_host_wait_for_both_sides_which_hides_no_work(
    sides: FakeSides,
) -> None:
    sides.host_gap_us, sides.baseline.host_gap_us = lambda: 350.0, 300.0
    assert sides.take().candidate_us
    sides.host_gap_us, sides.baseline.host_gap_us = lambda: 900.0, 300.0
    with pytest.raises(Cheated, match="at least 700 us more on the host's clock"):
        sides.take()
    # as long for both: nobody knows what it is, so no time counts and nobody is a cheat
    for theirs in (900.0, 5000.0):
        sides.host_gap_us, sides.baseline.host_gap_us = lambda: 900.0, theirs
        with pytest.raises(VoidTiming, match="for the baseline's replays as well"):
            sides.take()


def test_a_sign_of_life_comes_before_every_replay(sides: FakeSides) -> None:
    signs = []
    sides.pair(False).run(60.0, SCORED, lambda: signs.append(len(sides.runs)))
    assert len(signs) == sides.examined and signs[0] == 0
