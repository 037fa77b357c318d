"""How a race is run, with the runners' loops in threads and shared memory files for device memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evoengine.candidate.binding import CasePlan
from evoengine.errors import TaskError
from evoengine.evaluate.device.worker_protocol import HOLDER, NEWCOMER, RACING, RUNNER_ENDED
from evoengine.evaluate.worker.cuda import raced_timing
from evoengine.evaluate.worker.cuda.call_counts import WARM_UP_CALLS
from evoengine.evaluate.worker.cuda.examination import Examination, Examined
from evoengine.evaluate.worker.cuda.harness.runner_messages import Replay, Replayed
from evoengine.evaluate.worker.cuda.harness.virtual_memory import VirtualMemoryError
from evoengine.evaluate.worker.cuda.input_pool import PoolSet, timed_sets
from evoengine.evaluate.worker.cuda.pair_client import PairClient
from evoengine.evaluate.worker.cuda.raced_timing import BASELINE, MOST_DISAGREEMENTS, RacedTiming
from evoengine.evaluate.worker.cuda.slots import SlotPool
from evoengine.evaluate.worker.race_judge import judge_race
from evoengine.protocols import CompiledCase, Job, RaceReport
from evoengine.records import Status
from tests.evaluate.worker.cuda.host_device import HostReplayer, connected_pair, install
from tests.evaluate.worker.cuda.test_cuda_backend import ELEMENTS, Desk, honest

SIDES = [NEWCOMER, HOLDER]
BASELINE_US = 20.0


class Track:
    """Where two candidates and a baseline of 20 us race on the case `plain`."""

    def __init__(
        self, desk: Desk, ours: PairClient, theirs: PairClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.desk = desk
        self.pairs = {NEWCOMER: ours, HOLDER: theirs}
        self.times_us = {NEWCOMER: 10.0, HOLDER: 10.0}
        self.agrees: Callable[[str], bool] = lambda _side: True
        self.on_replay: Callable[[str], None] = lambda _side: None
        self.captures = 0  # of the baseline, that were replayed
        self.is_prepared = False
        # side, numbers of the sets of the timed calls, cold
        self.replays: list[tuple[str, tuple[int, ...], bool]] = []
        self.announced: list[tuple[str, bool]] = []
        self.memory_checks = 0
        for side in SIDES:
            HostReplayer.behaviours[side] = lambda call, _: honest(call, ELEMENTS["plain"])
        monkeypatch.setattr(HostReplayer, "replay", self._timed(HostReplayer.replay))
        monkeypatch.setattr(Examination, "replay", self._noted(Examination.replay))
        baseline = SimpleNamespace(
            replay=self._replay_baseline,
            gaps_us=(1.0,),
            host_gap_us=50.0,
            prepare=self._prepare,
        )
        monkeypatch.setattr(desk.backend.all_baselines, "replays", lambda *_: baseline)
        refuse_memory = desk.backend.refuse_memory

        def counted(*arguments: Any, are_new: bool) -> Any:
            self.memory_checks += 1
            return refuse_memory(*arguments, are_new=are_new)

        monkeypatch.setattr(desk.backend, "refuse_memory", counted)

    def run(self) -> RaceReport:
        """The report on a race."""
        race = RacedTiming(
            self.desk.backend,
            self._job(NEWCOMER),
            self.pairs[NEWCOMER],
            self._job(HOLDER),
            self.pairs[HOLDER],
            lambda step, may_run: self.announced.append((step, may_run)),
        )
        report = judge_race(race, self.desk.backend)
        assert not self.desk.harness.token.is_held  # type: ignore[attr-defined]  # a HostToken
        return report

    @property
    def rounds(self) -> list[dict[str, tuple[tuple[int, ...], bool]]]:
        """The sets of every round by side, in the order in which the sides ran."""
        laps = self.replays[: len(self.replays) // 3 * 3]
        return [
            {side: (sets, cold) for side, sets, cold in laps[start : start + 3]}
            for start in range(0, len(laps), 3)
        ]

    def _job(self, side: str) -> Job:
        plan = CasePlan(case="plain", hidden=False, macros={}, scratch={}, launches=())
        compiled = CompiledCase(plan=plan, code_path=side, functions={})
        return Job(cases=(compiled,), tier="fp32", baselines={"plain": "torch.mul"})

    def _timed(self, replay: Any) -> Any:
        def timed(replayer: HostReplayer, request: Replay) -> Replayed:
            assert replayer._loaded is not None
            side = replayer._loaded.code_path
            self.on_replay(side)
            replay(replayer, request)
            calls = len(request.calls)
            us = self.times_us[side] * (1 if request.cold else calls)
            samples = calls if request.cold else 1
            stamp_us = us if self.agrees(side) else 10 * us + 1000
            return Replayed(
                event_us=(us,) * samples, stamp_us=(stamp_us,) * samples, host_us=us * samples
            )

        return timed

    def _noted(self, replay: Any) -> Any:
        def noted(
            examination: Examination,
            sets: Sequence[Any],
            cold: bool,
            meanwhile: Callable[[], None] = lambda: None,
        ) -> Examined:
            ours = examination._runner is self.pairs[NEWCOMER].shown
            side = NEWCOMER if ours else HOLDER
            assert self.announced[-1] == (f"{RACING} {side} on plain", True)
            self._note(side, sets[WARM_UP_CALLS:], cold)
            found: Examined = replay(examination, sets, cold, meanwhile)
            return found

        return noted

    def _note(self, side: str, sets: Sequence[Any], cold: bool) -> None:
        assert self.desk.harness.token.is_held  # type: ignore[attr-defined]  # a HostToken
        self.replays.append((side, tuple(item.number for item in sets), cold))

    def _replay_baseline(self, sets: Sequence[Any], cold: bool) -> tuple[float, ...]:
        self._note(BASELINE, sets, cold)
        self.captures += self.is_prepared
        self.is_prepared = False
        return (BASELINE_US,) * len(sets) if cold else (BASELINE_US * len(sets),)

    def _prepare(self, _calls: int, _cold: bool) -> None:
        self.is_prepared = True


@pytest.fixture(params=["hot", "cold"])
def track(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Track]:
    install(monkeypatch)
    monkeypatch.setattr(raced_timing, "WARM_UP_ROUNDS", 0)
    with ExitStack() as stack:
        ours, theirs = (stack.enter_context(connected_pair(monkeypatch)) for _ in SIDES)
        desk = Desk(tmp_path, ours, objective={"cases": ["plain"], "cache": request.param})
        yield Track(desk, ours, theirs, monkeypatch)


def test_all_three_take_the_same_calls_on_the_same_sets_in_an_order_that_is_drawn(
    track: Track,
) -> None:
    track.times_us[NEWCOMER] = 30.0  # it loses: nothing follows the rounds
    report = track.run()
    assert report.status is Status.correct, report
    assert len(track.replays) % 3 == 0
    for one in track.rounds:
        assert one.keys() == {NEWCOMER, HOLDER, BASELINE}
        assert len(set(one.values())) == 1, "the same sets in the same order, of the same kind"
    cold = track.desk.backend.scores_cold
    assert {kind for _, _, kind in track.replays} == {cold}
    assert len({tuple(one) for one in track.rounds}) > 1, "orders of the sides"
    assert len({sets for _, sets, _ in track.replays}) > 2
    (timing,) = report.timings
    assert len(timing.calls) == sum(len(one[BASELINE][0]) if cold else 1 for one in track.rounds)
    assert set(timing.newcomer_us) == {30.0} and set(timing.holder_us) == {10.0}
    assert set(timing.baseline_us) == {BASELINE_US}


def test_no_distribution_that_is_never_timed_is_raced_on(track: Track) -> None:
    track.run()
    extreme = {
        item.number for item in track.desk.pool.sets("plain") if item.distribution == "extreme"
    }
    assert extreme and not extreme & {number for _, sets, _ in track.replays for number in sets}


@pytest.mark.parametrize("newcomer_us", [5.0, 20.0])
def test_a_race_that_is_decided_ends_early_and_one_that_is_not_goes_on(
    track: Track, newcomer_us: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    track.times_us[NEWCOMER] = newcomer_us
    (timing,) = track.run().timings
    assert len(set(timing.groups)) <= 4
    if newcomer_us > 10:  # else the check of its memory follows
        assert track.captures == len(track.rounds), "the baseline is captured for every round"

    monkeypatch.setattr(raced_timing, "MORE_ROUNDS", 0)
    before = len(track.replays)

    def alternates(side: str) -> None:
        group = (len(track.replays) - before - 1) // 3 // raced_timing.ROUNDS
        track.times_us[side] = 10.0 if side == HOLDER else (8.8, 10.9)[group % 2]

    track.on_replay = alternates
    (timing,) = track.run().timings
    assert len(set(timing.groups)) == 8
    assert list(timing.groups) == sorted(timing.groups)


def test_the_first_replays_of_all_three_are_not_timed(
    track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raced_timing, "WARM_UP_ROUNDS", 3)
    track.times_us[NEWCOMER] = 30.0
    (timing,) = track.run().timings
    rounds = len(track.replays) // 3 - 3
    assert [side for side, _, _ in track.replays[:9]] == [NEWCOMER, HOLDER, BASELINE] * 3
    assert len(timing.calls) == sum(
        len(sets) if track.desk.backend.scores_cold else 1
        for side, sets, _ in track.replays[9:]
        if side == BASELINE
    )
    assert track.captures == rounds


def test_only_a_winner_is_tried_on_new_sets(track: Track) -> None:
    for newcomer_us, checks in ((20.0, 0), (10.0, 0), (5.0, 1)):
        track.memory_checks = 0
        track.times_us[NEWCOMER] = newcomer_us
        before = track.desk.pool.sets("plain")
        report = track.run()
        assert (report.status, track.memory_checks) == (Status.correct, checks)
    now = track.desk.pool.sets("plain")
    timed = timed_sets(now)
    assert set(now) - set(before) == set(timed)
    assert track.announced.count(("computing expected outputs of plain", False)) == 1
    made = track.desk.turns_of_sets[-len(timed) :]
    assert len(set(made)) == len(timed), "the GPU was held for all of them"


def test_a_winner_that_is_slower_on_new_sets_keeps_results(track: Track) -> None:
    seen: set[PoolSet] = set()

    def remembers(side: str) -> None:
        pool = frozenset(timed_sets(track.desk.pool.sets("plain")))
        known = len(seen & pool) > 0
        track.times_us[side] = 10.0 if side == HOLDER else 5.0 if known else 9.0
        if track.memory_checks == 0:
            seen.update(pool)

    track.on_replay = remembers
    report = track.run()
    assert (report.status, report.at_fault) == (Status.cheat, NEWCOMER), report
    assert "slower on inputs that it has not seen" in report.reason


@pytest.mark.parametrize("side", SIDES)
def test_a_wrong_output_is_the_fault_of_its_side_and_ends_the_race(track: Track, side: str) -> None:
    calls: list[int] = []

    def tires(call: dict[str, int], number: int) -> None:
        calls.append(number)
        if len(calls) < 8:  # well before the shortest race is over
            honest(call, ELEMENTS["plain"])

    HostReplayer.behaviours[side] = tires
    report = track.run()
    assert (report.status, report.at_fault) == (Status.wrong_result, side)
    assert report.reason.startswith("case plain: ") and report.timings == ()
    assert track.replays[-1][0] == side, "nothing was replayed after it"


@pytest.mark.parametrize("side", SIDES)
def test_rounds_about_which_two_clocks_disagree_do_not_count(track: Track, side: str) -> None:
    numbers = iter(range(10**6))
    track.agrees = lambda one: one != side or next(numbers) >= MOST_DISAGREEMENTS
    track.times_us[NEWCOMER] = 20.0
    report = track.run()
    assert report.status is Status.correct
    (timing,) = report.timings
    counted = track.rounds[MOST_DISAGREEMENTS:]
    cold = track.desk.backend.scores_cold
    assert len(timing.calls) == sum(len(one[BASELINE][0]) if cold else 1 for one in counted)


@pytest.mark.parametrize("side", SIDES)
def test_more_disagreements_than_by_accident_end_a_race_and_are_a_newcomers_fault_alone(
    track: Track, side: str
) -> None:
    """A few accidents of the other side do not make it the culprit."""
    other = next(one for one in SIDES if one != side)
    numbers = {side: iter(range(10**6)), other: iter(range(10**6))}
    track.agrees = lambda one: one == other and next(numbers[one]) >= MOST_DISAGREEMENTS
    report = track.run()
    if side == NEWCOMER:
        assert (report.status, report.at_fault) == (Status.cheat, side)
        assert report.reason == "two clocks disagree about the time of its replays"
    else:  # what disturbs a holder must not cost it its place
        assert (report.status, report.at_fault) == (Status.unstable, "")
        assert report.reason == "two clocks disagree about the time of the holder's replays"
    assert len(track.rounds) == MOST_DISAGREEMENTS + 1


@pytest.mark.parametrize("side", SIDES)
def test_a_runner_that_ends_is_the_fault_of_its_side(track: Track, side: str) -> None:
    track.on_replay = lambda one: _end(track.pairs[side]) if one == side else None
    report = track.run()
    assert (report.status, report.at_fault) == (Status.crash, side)
    assert report.reason == RUNNER_ENDED


@pytest.mark.parametrize("side", SIDES)
def test_a_race_of_which_both_runners_were_ended_is_a_report_too(track: Track, side: str) -> None:
    """So the parent ends a race that takes too long: the side that ran is told, nothing raises."""

    def end(one: str) -> None:
        if one == side:
            for pair in track.pairs.values():
                _end(pair)

    track.on_replay = end
    report = track.run()
    assert (report.status, report.at_fault) == (Status.crash, side)


@pytest.mark.parametrize("side", SIDES)
def test_memory_that_only_a_race_lacks_is_the_fault_of_neither_side(
    track: Track, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = SlotPool.place
    running: list[str] = []

    def place_in(slots: SlotPool, sizes: Sequence[int]) -> Any:
        running.append(track.announced[-1][0])
        if running[-1] == f"{RACING} {side} on plain":
            raise VirtualMemoryError("cuMemCreate", 2)
        return place(slots, sizes)

    monkeypatch.setattr(SlotPool, "place", place_in)
    report = track.run()
    assert (report.status, report.at_fault) == (Status.launch_error, "")
    assert "memory" in report.reason and running


@pytest.mark.parametrize("cause", [torch.cuda.OutOfMemoryError("CUDA out of memory"), None])
def test_a_baseline_without_memory_ends_a_race_and_one_that_fails_ends_the_run(
    track: Track, cause: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise TaskError("t.py:forward raised an error for case plain") from cause

    monkeypatch.setattr(track.desk.backend.all_baselines, "replays", fails)
    if cause is None:
        with pytest.raises(TaskError, match="raised an error for case plain"):
            track.run()
    else:
        report = track.run()
        assert (report.status, report.at_fault) == (Status.launch_error, "")
        assert report.reason == "no memory for a race: CUDA out of memory"


def _end(pair: PairClient) -> None:
    """Closes the connections to both runners, as their end does."""
    for one in (pair.shown, pair.hidden):
        assert one is not None
        with suppress(OSError):  # this runner's own thread may come here after the test's end
            one._connection.shutdown(2)
